"""The compiled template: what a deployment would make of the app, its storage and who may do what."""

import json
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from shared.settings import read_settings
from tests.infra.conftest import Bicep
from tests.infra.source import INFRA, ROOT

# Azure's built-in roles; their ids are the same everywhere.
STORAGE_ROLES = {
    "StorageBlobDataOwner": "b7e6dc6d-f1e8-4753-8033-0f276bb0955b",
    "StorageQueueDataContributor": "974c5e8b-45b9-4653-ba55-5f855dd0fb88",
    "StorageTableDataContributor": "0a9a7e1f-b9d0-4cc4-a60d-0319b160aaa3",
}
METRICS_ROLE = "3913510d-42f4-4e42-8a64-420c390055eb"


def resources(template: Any) -> Iterator[Any]:
    """All resources of a template and of the templates in it."""
    listed = template["resources"]
    for resource in listed.values() if isinstance(listed, dict) else listed:
        yield resource
        if "template" in resource.get("properties", {}):
            yield from resources(resource["properties"]["template"])


def every(template: Any, kind: str) -> list[Any]:
    return [each for each in resources(template) if each["type"] == kind and not each.get("existing")]


def only(template: Any, kind: str) -> Any:
    (found,) = every(template, kind)
    return found


def module(template: Any, name: str) -> Any:
    (found,) = (each for each in every(template, "Microsoft.Resources/deployments") if each["name"] == name)
    return found["properties"]


def test_the_compiler_has_nothing_to_say(built: "subprocess.CompletedProcess[str]") -> None:
    assert (built.returncode, built.stderr) == (0, "")


def test_the_linter_has_nothing_to_say(bicep: Bicep) -> None:
    done = bicep("lint", str(INFRA / "main.bicep"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_app_may_use_its_storage_and_send_telemetry_and_no_more(template: Any) -> None:
    rbac = module(template, "rbac")["template"]
    assert rbac["variables"] == {"storageRoles": STORAGE_ROLES, "monitoringMetricsPublisher": METRICS_ROLE}
    made = every(rbac, "Microsoft.Authorization/roleAssignments")
    assert len(made) == 4
    for to, condition in (
        ("reference(", None),
        ("parameters('deployerId')", "[not(empty(parameters('deployerId')))]"),
    ):
        storage, metrics = [each for each in made if to in each["properties"]["principalId"]]
        assert storage["copy"]["count"] == "[length(items(variables('storageRoles')))]"
        assert "items(variables('storageRoles'))[copyIndex()].value" in storage["properties"]["roleDefinitionId"]
        assert "Microsoft.Storage/storageAccounts" in storage["scope"]
        assert "variables('monitoringMetricsPublisher')" in metrics["properties"]["roleDefinitionId"]
        assert "Microsoft.Insights/components" in metrics["scope"]
        assert storage.get("condition") == metrics.get("condition") == condition


def test_storage_takes_no_key_no_old_tls_and_shows_nothing_in_public(template: Any) -> None:
    account = only(template, "Microsoft.Storage/storageAccounts")["properties"]
    assert {name: account[name] for name in account if name.startswith(("allow", "minimum", "supports"))} == {
        "allowBlobPublicAccess": False,
        "allowCrossTenantReplication": False,
        "allowSharedKeyAccess": False,
        "minimumTlsVersion": "TLS1_2",
        "supportsHttpsTrafficOnly": True,
    }
    container = only(template, "Microsoft.Storage/storageAccounts/blobServices/containers")
    assert container["properties"] == {"publicAccess": "None"}


def test_nothing_is_reached_by_key(template: Any) -> None:
    text = json.dumps(template)
    for key in (
        "listKeys",
        "listAccountSas",
        "AccountKey",
        "'AzureWebJobsStorage'",
        "WEBSITE_CONTENT",
        "InstrumentationKey",
    ):
        assert key not in text, key
    assert only(template, "Microsoft.Insights/components")["properties"]["DisableLocalAuth"] is True
    policies = every(template, "Microsoft.Web/sites/basicPublishingCredentialsPolicies")
    assert [policy["properties"] for policy in policies] == [{"allow": False}] * 2


def test_the_app_runs_by_its_identity_in_the_flex_consumption_plan(template: Any) -> None:
    assert only(template, "Microsoft.Web/serverfarms")["sku"] == {"name": "FC1", "tier": "FlexConsumption"}
    site = only(template, "Microsoft.Web/sites")
    config = site["properties"]["functionAppConfig"]
    assert site["kind"] == "functionapp,linux"
    assert site["identity"]["type"] == "UserAssigned"
    assert list(site["identity"]["userAssignedIdentities"]) == ["[format('{0}', parameters('identityId'))]"]
    assert config["deployment"]["storage"]["authentication"] == {
        "type": "UserAssignedIdentity",
        "userAssignedIdentityResourceId": "[parameters('identityId')]",
    }
    assert config["runtime"] == {"name": "python", "version": "3.13"}
    assert site["properties"]["httpsOnly"] is True
    assert site["properties"]["keyVaultReferenceIdentity"] == "[parameters('identityId')]"
    assert site["properties"]["siteConfig"]["minTlsVersion"] == "1.2"


def test_the_package_goes_where_its_container_is(template: Any) -> None:
    storage, api = module(template, "storage")["parameters"], module(template, "api")["parameters"]
    assert storage["deploymentContainerName"] == api["deploymentContainerName"]
    site = only(template, "Microsoft.Web/sites")["properties"]["functionAppConfig"]
    assert "parameters('deploymentContainerName')" in site["deployment"]["storage"]["value"]


def test_the_app_is_deployed_after_its_roles(template: Any) -> None:
    api = next(each for each in every(template, "Microsoft.Resources/deployments") if each["name"] == "api")
    assert any("'rbac'" in each for each in api["dependsOn"])
    assert "outputs.identityClientId" in json.dumps(api["properties"]["parameters"]["identityClientId"])


def test_the_names_of_table_and_queues_are_those_of_the_code(template: Any) -> None:
    defaults = read_settings({"AzureWebJobsStorage": "UseDevelopmentStorage=true"})
    names = template["variables"]
    assert (names["tableName"], names["queueName"]) == (defaults.table_name, defaults.queue_name)
    bound = re.findall(r'queue_name="%QUEUE_NAME%([^"]*)"', (ROOT / "function_app.py").read_text())
    made = module(template, "storage")["parameters"]["queueNames"]["value"]
    assert made == ["[variables('queueName')]"] + [
        f"[format('{{0}}{suffix}', variables('queueName'))]" for suffix in bound if suffix
    ]


def test_always_ready_instances_are_those_of_a_function_that_exists(template: Any) -> None:
    scale = only(template, "Microsoft.Web/sites")["properties"]["functionAppConfig"]["scaleAndConcurrency"]
    (name,) = re.findall(r"'function:(\w+)'", scale["alwaysReady"])
    assert f"async def {name}(" in (ROOT / "function_app.py").read_text()


def test_azd_finds_the_app_by_its_tag(template: Any) -> None:
    (service,) = yaml.safe_load((ROOT / "azure.yaml").read_text())["services"]
    assert f"'azd-service-name', '{service}'" in only(template, "Microsoft.Web/sites")["tags"]
    assert template["variables"]["tags"] == {"azd-env-name": "[parameters('environmentName')]"}
    tagged = [each for each in resources(template) if "tags" in each]
    assert len(tagged) > 10


def test_the_parameters_file_gives_parameters_that_there_are_and_their_defaults(template: Any) -> None:
    given = json.loads((INFRA / "main.parameters.json").read_text())["parameters"]
    declared = template["parameters"]
    assert given.keys() <= declared.keys()
    assert {name for name in declared if "defaultValue" not in declared[name]} <= given.keys()
    for name, each in given.items():
        if default := re.fullmatch(r"\$\{\w+=(.*)\}", str(each["value"])):
            assert default[1] == str(declared[name]["defaultValue"]).replace("False", "false"), name


def test_with_a_network_storage_is_reached_through_it_alone(template: Any) -> None:
    public = module(template, "storage")["parameters"]["publicNetworkAccess"]["value"]
    assert public == "[not(parameters('vnetEnabled'))]"
    account = only(template, "Microsoft.Storage/storageAccounts")["properties"]
    assert account["publicNetworkAccess"] == "[if(parameters('publicNetworkAccess'), 'Enabled', 'Disabled')]"
    assert account["networkAcls"]["defaultAction"] == "[if(parameters('publicNetworkAccess'), 'Allow', 'Deny')]"
    network = module(template, "network")["template"]
    assert network["variables"]["services"] == ["blob", "queue", "table"]
    for kind in ("privateEndpoints", "privateDnsZones", "privateEndpoints/privateDnsZoneGroups"):
        assert only(network, f"Microsoft.Network/{kind}")["copy"]["count"] == "[length(variables('services'))]"
    subnets = only(network, "Microsoft.Network/virtualNetworks")["properties"]["subnets"]
    delegated = [each["name"] for each in subnets if each["properties"].get("delegations")]
    assert delegated == ["app"]


@pytest.mark.parametrize("option", ["vnetEnabled", "alertsEnabled"])
def test_an_option_is_off_unless_asked_for(template: Any, option: str) -> None:
    assert template["parameters"][option]["defaultValue"] is False
    conditions = [each.get("condition") for each in every(template, "Microsoft.Resources/deployments")]
    assert conditions.count(f"[parameters('{option}')]") == 1


def test_alerts_look_for_what_the_code_says(template: Any) -> None:
    rules = {rule["name"]: rule["query"] for rule in module(template, "alerts")["template"]["variables"]["rules"]}
    assert rules.keys() == {"overdue", "poison", "failed"}
    code = "".join(path.read_text() for path in (ROOT / "shared").rglob("*.py"))
    for query in rules.values():
        looked_for = re.findall(r'message startswith "([^"]+)"', query)
        assert [text for text in looked_for if f'"{text}' not in code] == []
        assert len(looked_for) == 1
    start = re.search(r"substring\(message, (\d+)\)", rules["overdue"])
    assert start is not None
    assert int(start[1]) == len("timers are overdue since ")
