targetScope = 'subscription'

@description('Name of the environment: it names the resource group, and all resources by a hash.')
@minLength(1)
@maxLength(64)
param environmentName string

@description('Region of all resources. It must offer the Flex Consumption plan.')
@minLength(1)
@metadata({ azd: { type: 'location' } })
param location string

@description('Who deploys, and may look into the storage account; empty for nobody.')
param principalId string = deployer().objectId

@description('What principalId is; a pipeline is a ServicePrincipal.')
@allowed(['User', 'ServicePrincipal', 'Group'])
param principalType string = 'User'

@description('Storage reached through private endpoints only.')
param vnetEnabled bool = false

@description('Alerts for overdue timers, poison messages and failed runs.')
param alertsEnabled bool = false

@description('Whom alerts are mailed to; empty for alerts that only stand in the portal.')
param alertEmail string = ''

@description('Redundancy of the storage account: docs/operations.md, disaster recovery.')
@allowed(['Standard_LRS', 'Standard_ZRS', 'Standard_GRS', 'Standard_GZRS', 'Standard_RAGRS', 'Standard_RAGZRS'])
param storageSku string = 'Standard_LRS'

@allowed([512, 2048, 4096])
param instanceMemoryMB int = 2048

@minValue(40)
@maxValue(1000)
param maximumInstanceCount int = 40

@description('Instances that wait for tickets day and night; without any, the first ticket waits for a cold start.')
@minValue(0)
@maxValue(20)
param alwaysReadyInstances int = 0

@description('Recorded at the first start; cannot change afterwards.')
@minValue(1)
@maxValue(256)
param partitions int = 16

@description('Further app settings of the README\'s table, such as QUEUE_TARGETS.')
@secure()
param appSettings object = {}

param resourceGroupName string = ''
param apiServiceName string = ''
param apiUserAssignedIdentityName string = ''
param appServicePlanName string = ''
param storageAccountName string = ''
param logAnalyticsName string = ''
param applicationInsightsName string = ''
param vNetName string = ''

var abbrs = loadJsonContent('./abbreviations.json')
var resourceToken = toLower(uniqueString(subscription().id, environmentName, location))
var tags = { 'azd-env-name': environmentName }
var functionAppName = !empty(apiServiceName) ? apiServiceName : '${abbrs.webSitesFunctions}api-${resourceToken}'
var deploymentContainerName = 'app-package-${take(functionAppName, 32)}-${take(resourceToken, 7)}'
var tableName = 'timerjobs'
var queueName = 'timerjobs-tickets'

resource rg 'Microsoft.Resources/resourceGroups@2025-04-01' = {
  name: !empty(resourceGroupName) ? resourceGroupName : '${abbrs.resourcesResourceGroups}${environmentName}'
  location: location
  tags: tags
}

module storage './app/storage.bicep' = {
  name: 'storage'
  scope: rg
  params: {
    name: !empty(storageAccountName) ? storageAccountName : '${abbrs.storageStorageAccounts}${resourceToken}'
    location: location
    tags: tags
    sku: storageSku
    publicNetworkAccess: !vnetEnabled
    deploymentContainerName: deploymentContainerName
    tableName: tableName
    queueNames: [queueName, '${queueName}-poison']
  }
}

module monitoring './app/monitoring.bicep' = {
  name: 'monitoring'
  scope: rg
  params: {
    logAnalyticsName: !empty(logAnalyticsName)
      ? logAnalyticsName
      : '${abbrs.operationalInsightsWorkspaces}${resourceToken}'
    applicationInsightsName: !empty(applicationInsightsName)
      ? applicationInsightsName
      : '${abbrs.insightsComponents}${resourceToken}'
    location: location
    tags: tags
  }
}

module rbac './app/rbac.bicep' = {
  name: 'rbac'
  scope: rg
  params: {
    identityName: !empty(apiUserAssignedIdentityName)
      ? apiUserAssignedIdentityName
      : '${abbrs.managedIdentityUserAssignedIdentities}api-${resourceToken}'
    location: location
    tags: tags
    storageAccountName: storage.outputs.name
    applicationInsightsName: monitoring.outputs.applicationInsightsName
    deployerId: principalId
    deployerType: principalType
  }
}

module network './app/network.bicep' = if (vnetEnabled) {
  name: 'network'
  scope: rg
  params: {
    name: !empty(vNetName) ? vNetName : '${abbrs.networkVirtualNetworks}${resourceToken}'
    endpointPrefix: abbrs.networkPrivateEndpoints
    location: location
    tags: tags
    storageAccountName: storage.outputs.name
  }
}

module api './app/api.bicep' = {
  name: 'api'
  scope: rg
  params: {
    name: functionAppName
    planName: !empty(appServicePlanName) ? appServicePlanName : '${abbrs.webServerFarms}${resourceToken}'
    location: location
    tags: tags
    identityId: rbac.outputs.identityId
    identityClientId: rbac.outputs.identityClientId
    storageAccountName: storage.outputs.name
    deploymentContainerName: deploymentContainerName
    applicationInsightsName: monitoring.outputs.applicationInsightsName
    subnetId: vnetEnabled ? network!.outputs.appSubnetId : ''
    instanceMemoryMB: instanceMemoryMB
    maximumInstanceCount: maximumInstanceCount
    alwaysReadyInstances: alwaysReadyInstances
    appSettings: union(
      {
        TABLE_NAME: tableName
        QUEUE_NAME: queueName
        PARTITIONS: string(partitions)
        // Why these three: docs/operations.md, app settings.
        DETECTION_SCHEDULE: '0 * * * * *'
        DETECTION_PERIOD: 'PT45S'
        HORIZON: 'PT15M'
      },
      appSettings
    )
  }
}

module alerts './app/alerts.bicep' = if (alertsEnabled) {
  name: 'alerts'
  scope: rg
  params: {
    rulePrefix: '${abbrs.insightsScheduledQueryRules}${resourceToken}'
    actionGroupName: '${abbrs.insightsActionGroups}${resourceToken}'
    location: location
    tags: tags
    applicationInsightsName: monitoring.outputs.applicationInsightsName
    email: alertEmail
  }
}

output AZURE_LOCATION string = location
output AZURE_TENANT_ID string = tenant().tenantId
output AZURE_RESOURCE_GROUP string = rg.name
output AZURE_STORAGE_ACCOUNT_NAME string = storage.outputs.name
output APPLICATIONINSIGHTS_CONNECTION_STRING string = monitoring.outputs.connectionString
output SERVICE_API_IDENTITY_PRINCIPAL_ID string = rbac.outputs.identityPrincipalId
output SERVICE_API_NAME string = api.outputs.name
output SERVICE_API_URI string = api.outputs.uri
output AZURE_FUNCTION_NAME string = api.outputs.name
