// The app's identity, and what it and the deployer may do. The app is deployed after this.
param identityName string
param location string
param tags object
param storageAccountName string
param applicationInsightsName string
param deployerId string
param deployerType string

// Built-in roles, the same in every tenant.
var storageRoles = {
  StorageBlobDataOwner: 'b7e6dc6d-f1e8-4753-8033-0f276bb0955b'
  StorageQueueDataContributor: '974c5e8b-45b9-4653-ba55-5f855dd0fb88'
  StorageTableDataContributor: '0a9a7e1f-b9d0-4cc4-a60d-0319b160aaa3'
}
var monitoringMetricsPublisher = '3913510d-42f4-4e42-8a64-420c390055eb'

resource storage 'Microsoft.Storage/storageAccounts@2025-08-01' existing = {
  name: storageAccountName
}

resource insights 'Microsoft.Insights/components@2020-02-02' existing = {
  name: applicationInsightsName
}

resource identity 'Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30' = {
  name: identityName
  location: location
  tags: tags
}

resource appStorage 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for role in items(storageRoles): {
    name: guid(storage.id, identity.id, role.value)
    scope: storage
    properties: {
      principalId: identity.properties.principalId
      principalType: 'ServicePrincipal'
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', role.value)
    }
  }
]

resource appMetrics 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(insights.id, identity.id, monitoringMetricsPublisher)
  scope: insights
  properties: {
    principalId: identity.properties.principalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', monitoringMetricsPublisher)
  }
}

resource deployerStorage 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for role in items(storageRoles): if (!empty(deployerId)) {
    name: guid(storage.id, deployerId, role.value)
    scope: storage
    properties: {
      principalId: deployerId
      principalType: deployerType
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', role.value)
    }
  }
]

resource deployerMetrics 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (!empty(deployerId)) {
  name: guid(insights.id, deployerId, monitoringMetricsPublisher)
  scope: insights
  properties: {
    principalId: deployerId
    principalType: deployerType
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', monitoringMetricsPublisher)
  }
}

output identityId string = identity.id
output identityPrincipalId string = identity.properties.principalId
output identityClientId string = identity.properties.clientId
