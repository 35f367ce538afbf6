// The Function App, in the Flex Consumption plan. It has no key: not of its storage, not of its telemetry.
param name string
param planName string
param location string
param tags object
param identityId string
param identityClientId string
param storageAccountName string
param deploymentContainerName string
param applicationInsightsName string
param subnetId string
param instanceMemoryMB int
param maximumInstanceCount int
param alwaysReadyInstances int
@secure()
param appSettings object

resource storage 'Microsoft.Storage/storageAccounts@2025-08-01' existing = {
  name: storageAccountName
}

resource insights 'Microsoft.Insights/components@2020-02-02' existing = {
  name: applicationInsightsName
}

resource plan 'Microsoft.Web/serverfarms@2025-03-01' = {
  name: planName
  location: location
  tags: tags
  kind: 'functionapp'
  sku: {
    name: 'FC1'
    tier: 'FlexConsumption'
  }
  properties: { reserved: true }
}

resource app 'Microsoft.Web/sites@2025-03-01' = {
  name: name
  location: location
  tags: union(tags, { 'azd-service-name': 'api' })
  kind: 'functionapp,linux'
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: { '${identityId}': {} }
  }
  properties: {
    serverFarmId: plan.id
    httpsOnly: true
    keyVaultReferenceIdentity: identityId
    virtualNetworkSubnetId: !empty(subnetId) ? subnetId : null
    siteConfig: {
      alwaysOn: false
      minTlsVersion: '1.2'
    }
    functionAppConfig: {
      deployment: {
        storage: {
          type: 'blobContainer'
          value: '${storage.properties.primaryEndpoints.blob}${deploymentContainerName}'
          authentication: {
            type: 'UserAssignedIdentity'
            userAssignedIdentityResourceId: identityId
          }
        }
      }
      runtime: {
        name: 'python'
        version: '3.13'
      }
      scaleAndConcurrency: {
        instanceMemoryMB: instanceMemoryMB
        maximumInstanceCount: maximumInstanceCount
        alwaysReady: alwaysReadyInstances > 0
          ? [{ name: 'function:dispatch', instanceCount: alwaysReadyInstances }]
          : []
        triggers: { http: { perInstanceConcurrency: 16 } }
      }
    }
  }

  resource ftp 'basicPublishingCredentialsPolicies' = {
    name: 'ftp'
    properties: { allow: false }
  }

  resource scm 'basicPublishingCredentialsPolicies' = {
    name: 'scm'
    properties: { allow: false }
  }

  resource settings 'config' = {
    name: 'appsettings'
    properties: union(
      {
        AzureWebJobsStorage__blobServiceUri: storage.properties.primaryEndpoints.blob
        AzureWebJobsStorage__queueServiceUri: storage.properties.primaryEndpoints.queue
        AzureWebJobsStorage__tableServiceUri: storage.properties.primaryEndpoints.table
        AzureWebJobsStorage__credential: 'managedidentity'
        AzureWebJobsStorage__clientId: identityClientId
        APPLICATIONINSIGHTS_CONNECTION_STRING: insights.properties.ConnectionString
        APPLICATIONINSIGHTS_AUTHENTICATION_STRING: 'ClientId=${identityClientId};Authorization=AAD'
        PYTHON_APPLICATIONINSIGHTS_ENABLE_TELEMETRY: 'true'
        OTEL_PYTHON_DISABLED_INSTRUMENTATIONS: 'azure_sdk,django,fastapi,flask,psycopg2,requests,urllib,urllib3'
      },
      appSettings
    )
  }
}

output name string = app.name
output uri string = 'https://${app.properties.defaultHostName}'
