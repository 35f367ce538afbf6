// One account for all that is kept: the table of jobs, the queue of tickets, the host's own blobs, the package.
param name string
param location string
param tags object
param sku string
param publicNetworkAccess bool
param deploymentContainerName string
param tableName string
param queueNames string[]

resource account 'Microsoft.Storage/storageAccounts@2025-08-01' = {
  name: name
  location: location
  tags: tags
  kind: 'StorageV2'
  sku: { name: sku }
  properties: {
    allowBlobPublicAccess: false
    allowCrossTenantReplication: false
    allowSharedKeyAccess: false
    defaultToOAuthAuthentication: true
    minimumTlsVersion: 'TLS1_2'
    publicNetworkAccess: publicNetworkAccess ? 'Enabled' : 'Disabled'
    supportsHttpsTrafficOnly: true
    networkAcls: {
      bypass: 'None'
      defaultAction: publicNetworkAccess ? 'Allow' : 'Deny'
    }
  }

  resource blobs 'blobServices' = {
    name: 'default'

    resource package 'containers' = {
      name: deploymentContainerName
      properties: { publicAccess: 'None' }
    }
  }

  resource tables 'tableServices' = {
    name: 'default'

    resource table 'tables' = {
      name: tableName
    }
  }

  resource queues 'queueServices' = {
    name: 'default'

    resource queue 'queues' = [
      for queueName in queueNames: {
        name: queueName
      }
    ]
  }
}

output name string = account.name
