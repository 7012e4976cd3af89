import { fromJSON, type PackageDefinition } from "@grpc/proto-loader";

/**
 * A field of a message: its number and its type. A field that can occur more than once also contains `repeated` or
 * `map`.
 */
type Field = readonly [number: number, type: string, often?: "repeated" | "map"];

type Messages = Readonly<Record<string, Readonly<Record<string, Field>>>>;

/**
 * The request and response types, by method. Their names describe their content, and can differ from the names in
 * Terraform, because messages contain only field numbers and types.
 */
type Methods = Readonly<Record<string, readonly [request: string, answer: string]>>;

const CONFIG: Messages[string] = { typeName: [1, "string"], config: [2, "Value"] };
const DIAGNOSTICS: Messages[string] = { diagnostics: [1, "Diagnostic", "repeated"] };
const DESCRIBED: Messages[string] = { description: [5, "string"] };

/** The part of version 6 of Terraform's plugin protocol that this provider uses. */
const MESSAGES: Messages = {
  Empty: {},
  Value: { msgpack: [1, "bytes"], json: [2, "bytes"] },
  Diagnostic: {
    severity: [1, "int32"],
    summary: [2, "string"],
    detail: [3, "string"],
    attribute: [4, "Path"],
  },
  Path: { steps: [1, "Step", "repeated"] },
  Step: { attributeName: [1, "string"], key: [2, "string"] },
  RawState: { json: [1, "bytes"] },
  Schema: { version: [1, "int64"], block: [2, "Block"] },
  Block: {
    version: [1, "int64"],
    attributes: [2, "Attribute", "repeated"],
    description: [4, "string"],
    descriptionKind: [5, "int32"],
  },
  Attribute: {
    name: [1, "string"],
    type: [2, "bytes"],
    description: [3, "string"],
    required: [4, "bool"],
    optional: [5, "bool"],
    computed: [6, "bool"],
    sensitive: [7, "bool"],
    descriptionKind: [8, "int32"],
    nestedType: [10, "Nested"],
    writeOnly: [11, "bool"],
  },
  Nested: { attributes: [1, "Attribute", "repeated"], nesting: [3, "int32"] },
  Function: {
    parameters: [1, "Parameter", "repeated"],
    variadicParameter: [2, "Parameter"],
    return: [3, "Return"],
    summary: [4, "string"],
    ...DESCRIBED,
  },
  Parameter: { name: [1, "string"], type: [2, "bytes"], ...DESCRIBED },
  Return: { type: [1, "bytes"] },
  Capabilities: {
    planDestroy: [1, "bool"],
    getProviderSchemaOptional: [2, "bool"],
    moveResourceState: [3, "bool"],
  },
  ClientCapabilities: { deferralAllowed: [1, "bool"], writeOnlyAttributesAllowed: [2, "bool"] },
  Timestamp: { seconds: [1, "int64"], nanos: [2, "int32"] },

  ProviderSchema: {
    provider: [1, "Schema"],
    resourceSchemas: [2, "Schema", "map"],
    dataSourceSchemas: [3, "Schema", "map"],
    serverCapabilities: [6, "Capabilities"],
    functions: [7, "Function", "map"],
    ephemeralResourceSchemas: [8, "Schema", "map"],
  },
  ProviderConfig: { config: [1, "Value"] },
  Configuration: { terraformVersion: [1, "string"], config: [2, "Value"] },
  ProviderConfigChecked: { diagnostics: [2, "Diagnostic", "repeated"] },
  Config: CONFIG,
  ResourceConfig: { ...CONFIG, clientCapabilities: [3, "ClientCapabilities"] },
  Checked: DIAGNOSTICS,
  Upgrade: { typeName: [1, "string"], version: [2, "int64"], rawState: [3, "RawState"] },
  Upgraded: { upgradedState: [1, "Value"], diagnostics: [2, "Diagnostic", "repeated"] },
  Read: { typeName: [1, "string"], currentState: [2, "Value"], private: [3, "bytes"] },
  ReadAnswer: {
    newState: [1, "Value"],
    diagnostics: [2, "Diagnostic", "repeated"],
    private: [3, "bytes"],
  },
  Plan: {
    typeName: [1, "string"],
    priorState: [2, "Value"],
    proposedNewState: [3, "Value"],
    config: [4, "Value"],
    priorPrivate: [5, "bytes"],
  },
  Planned: {
    plannedState: [1, "Value"],
    requiresReplace: [2, "Path", "repeated"],
    plannedPrivate: [3, "bytes"],
    diagnostics: [4, "Diagnostic", "repeated"],
  },
  Apply: {
    typeName: [1, "string"],
    priorState: [2, "Value"],
    plannedState: [3, "Value"],
    config: [4, "Value"],
    plannedPrivate: [5, "bytes"],
  },
  Applied: {
    newState: [1, "Value"],
    private: [2, "bytes"],
    diagnostics: [3, "Diagnostic", "repeated"],
  },
  Import: { typeName: [1, "string"], id: [2, "string"] },
  Imported: {
    importedResources: [1, "ImportedResource", "repeated"],
    diagnostics: [2, "Diagnostic", "repeated"],
  },
  ImportedResource: { typeName: [1, "string"], state: [2, "Value"], private: [3, "bytes"] },
  Move: {
    sourceProviderAddress: [1, "string"],
    sourceTypeName: [2, "string"],
    sourceState: [4, "RawState"],
    targetTypeName: [5, "string"],
    sourcePrivate: [6, "bytes"],
  },
  Moved: {
    targetState: [1, "Value"],
    diagnostics: [2, "Diagnostic", "repeated"],
    targetPrivate: [3, "bytes"],
  },
  DataRead: { state: [1, "Value"], diagnostics: [2, "Diagnostic", "repeated"] },
  Opened: {
    diagnostics: [1, "Diagnostic", "repeated"],
    renewAt: [2, "Timestamp"],
    result: [3, "Value"],
  },
  OfEphemeral: { typeName: [1, "string"] },
  Functions: { functions: [1, "Function", "map"] },
  Call: { name: [1, "string"], arguments: [2, "Value", "repeated"] },
  Called: { result: [1, "Value"], error: [2, "FunctionError"] },
  FunctionError: { text: [1, "string"], functionArgument: [2, "int64"] },
  Stopped: { error: [1, "string"] },

  OutputChunk: { channel: [1, "int32"], data: [2, "bytes"] },
  Connection: { serviceId: [1, "uint32"] },
  HealthQuestion: { service: [1, "string"] },
  Health: { status: [1, "int32"] },
};

const PROVIDER: Methods = {
  GetProviderSchema: ["Empty", "ProviderSchema"],
  ValidateProviderConfig: ["ProviderConfig", "ProviderConfigChecked"],
  ValidateResourceConfig: ["ResourceConfig", "Checked"],
  ValidateDataResourceConfig: ["Config", "Checked"],
  ValidateEphemeralResourceConfig: ["Config", "Checked"],
  UpgradeResourceState: ["Upgrade", "Upgraded"],
  ConfigureProvider: ["Configuration", "Checked"],
  ReadResource: ["Read", "ReadAnswer"],
  PlanResourceChange: ["Plan", "Planned"],
  ApplyResourceChange: ["Apply", "Applied"],
  ImportResourceState: ["Import", "Imported"],
  MoveResourceState: ["Move", "Moved"],
  ReadDataSource: ["Config", "DataRead"],
  OpenEphemeralResource: ["Config", "Opened"],
  CloseEphemeralResource: ["OfEphemeral", "Checked"],
  GetFunctions: ["Empty", "Functions"],
  CallFunction: ["Call", "Called"],
  StopProvider: ["Empty", "Stopped"],
};

const method = ([requestType, responseType]: readonly [string, string]) => ({
  requestType: `tfplugin6.${requestType}`,
  responseType: `tfplugin6.${responseType}`,
  comment: "",
});

function message(fields: Messages[string]) {
  const all = Object.entries(fields).map(([name, [id, type, often]]) => [
    name,
    {
      id,
      type,
      ...(often === "repeated" && { rule: "repeated" }),
      ...(often === "map" && { keyType: "string" }),
    },
  ]);
  return { fields: Object.fromEntries(all) };
}

/** Returns the definitions of all services of a Terraform plugin, by name. */
export function pluginServices(): PackageDefinition {
  const messages = Object.entries(MESSAGES).map(([name, fields]) => [name, message(fields)]);
  const methods = Object.entries(PROVIDER).map(([name, types]) => [name, method(types)]);
  return fromJSON(
    {
      nested: {
        tfplugin6: {
          nested: { ...Object.fromEntries(messages), Provider: { methods: Object.fromEntries(methods) } },
        },
        plugin: {
          nested: {
            GRPCController: { methods: { Shutdown: method(["Empty", "Empty"]) } },
            GRPCStdio: {
              methods: { StreamStdio: { ...method(["Empty", "OutputChunk"]), responseStream: true } },
            },
            GRPCBroker: {
              methods: {
                StartStream: {
                  ...method(["Connection", "Connection"]),
                  requestStream: true,
                  responseStream: true,
                },
              },
            },
          },
        },
        grpc: {
          nested: {
            health: {
              nested: {
                v1: { nested: { Health: { methods: { Check: method(["HealthQuestion", "Health"]) } } } },
              },
            },
          },
        },
      },
    },
    { keepCase: true, longs: Number, defaults: false },
  );
}
