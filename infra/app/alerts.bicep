// What somebody should look at. The log has it in any case, in the words of the code, which a test compares; where
// metrics are exported, they tell it too.
param rulePrefix string
param actionGroupName string
param location string
param tags object
param applicationInsightsName string
param email string

var rules = [
  {
    name: 'overdue'
    description: 'A timer has been overdue for more than five minutes: tickets are not taken, or detection stands still.'
    severity: 1
    query: '''
      union
        (traces
          | where message startswith "timers are overdue since "
          | where timestamp - todatetime(substring(message, 25)) > 5m),
        (customMetrics | where name == "timerjobs.overdue_age" and value > 300)
    '''
  }
  {
    name: 'poison'
    description: 'A ticket failed five times. Detection looks at its partition anyway; the log says why it failed.'
    severity: 2
    query: 'traces | where message startswith "a poison ticket is dropped"'
  }
  {
    name: 'failed'
    description: 'Runs have failed; /runs of their jobs says why.'
    severity: 2
    query: '''
      union
        (traces | where message startswith "a run has failed: "),
        (customMetrics | where name == "timerjobs.failed" and value > 0)
    '''
  }
]

resource insights 'Microsoft.Insights/components@2020-02-02' existing = {
  name: applicationInsightsName
}

resource receivers 'Microsoft.Insights/actionGroups@2023-01-01' = if (!empty(email)) {
  name: actionGroupName
  location: 'global'
  tags: tags
  properties: {
    enabled: true
    groupShortName: 'timerjobs'
    emailReceivers: [
      {
        name: 'operator'
        emailAddress: email
        useCommonAlertSchema: true
      }
    ]
  }
}

resource alerts 'Microsoft.Insights/scheduledQueryRules@2026-03-01' = [
  for rule in rules: {
    name: '${rulePrefix}-${rule.name}'
    location: location
    tags: tags
    properties: {
      displayName: 'timerjobs: ${rule.name}'
      description: rule.description
      enabled: true
      severity: rule.severity
      scopes: [insights.id]
      evaluationFrequency: 'PT5M'
      windowSize: 'PT15M'
      autoMitigate: true
      // A new workspace does not know yet what will be written to it.
      skipQueryValidation: true
      criteria: {
        allOf: [
          {
            query: rule.query
            timeAggregation: 'Count'
            operator: 'GreaterThan'
            threshold: 0
            failingPeriods: {
              numberOfEvaluationPeriods: 1
              minFailingPeriodsToAlert: 1
            }
          }
        ]
      }
      actions: { actionGroups: !empty(email) ? [receivers.id] : [] }
    }
  }
]
