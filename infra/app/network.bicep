// A network of the app's own, in which the storage account has private addresses for each of its services.
param name string
param endpointPrefix string
param location string
param tags object
param storageAccountName string

var services = ['blob', 'queue', 'table']

resource storage 'Microsoft.Storage/storageAccounts@2025-08-01' existing = {
  name: storageAccountName
}

resource network 'Microsoft.Network/virtualNetworks@2025-05-01' = {
  name: name
  location: location
  tags: tags
  properties: {
    addressSpace: { addressPrefixes: ['10.0.0.0/16'] }
    subnets: [
      {
        name: 'private-endpoints-subnet'
        properties: {
          addressPrefix: '10.0.1.0/24'
          privateEndpointNetworkPolicies: 'Disabled'
        }
      }
      {
        name: 'app'
        properties: {
          addressPrefix: '10.0.2.0/24'
          delegations: [
            {
              name: 'flex-consumption'
              properties: { serviceName: 'Microsoft.App/environments' }
            }
          ]
        }
      }
    ]
  }

  resource endpoints 'subnets' existing = {
    name: 'private-endpoints-subnet'
  }

  resource app 'subnets' existing = {
    name: 'app'
  }
}

resource zones 'Microsoft.Network/privateDnsZones@2024-06-01' = [
  for service in services: {
    name: 'privatelink.${service}.${environment().suffixes.storage}'
    location: 'global'
    tags: tags
  }
]

resource links 'Microsoft.Network/privateDnsZones/virtualNetworkLinks@2024-06-01' = [
  for (service, i) in services: {
    parent: zones[i]
    name: '${name}-${service}'
    location: 'global'
    tags: tags
    properties: {
      registrationEnabled: false
      virtualNetwork: { id: network.id }
    }
  }
]

resource endpoints 'Microsoft.Network/privateEndpoints@2025-05-01' = [
  for service in services: {
    name: '${endpointPrefix}${storageAccountName}-${service}'
    location: location
    tags: tags
    properties: {
      subnet: { id: network::endpoints.id }
      privateLinkServiceConnections: [
        {
          name: service
          properties: {
            privateLinkServiceId: storage.id
            groupIds: [service]
          }
        }
      ]
    }
  }
]

resource zoneGroups 'Microsoft.Network/privateEndpoints/privateDnsZoneGroups@2025-05-01' = [
  for (service, i) in services: {
    parent: endpoints[i]
    name: 'storage'
    properties: {
      privateDnsZoneConfigs: [
        {
          name: service
          properties: { privateDnsZoneId: zones[i].id }
        }
      ]
    }
  }
]

output appSubnetId string = network::app.id
