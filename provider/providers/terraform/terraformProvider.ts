import { lookupSchema, resourceSchema } from "../../terraform/attributes.ts";
import { describedInTerraform, memberOf, type Row, STRING, valuesOf } from "../../terraform/types.ts";
import { Configuration, configurationSchema } from "./configuration.ts";
import { type DataSource, dataSourceSchema, dataSourcesOf } from "./dataSources.ts";
import type { Diagnostic } from "./diagnostics.ts";
import { callFunction, functionSchemas } from "./providerFunctions.ts";
import { ResourceCalls, resources, saying, type WithConfig } from "./resourceCalls.ts";
import { encoded, rowIn } from "./wireValues.ts";

/** The session token, an ephemeral resource. */
const TOKEN = "gatehouse_session_token";
const TENANT = memberOf("tenant", "Id of the namespace. Left out: that of the provider.", STRING);

let known: ReadonlyMap<string, DataSource> | undefined;

/** All data sources. They are made when the first is asked for: most processes that Terraform starts need none. */
function dataSources(): ReadonlyMap<string, DataSource> {
  known ??= new Map(dataSourcesOf([...resources.values()]).map((source) => [source.typeName, source]));
  return known;
}

/** The schemas of all that configurations may have. */
export const providerSchema = () => ({
  provider: configurationSchema(),
  resourceSchemas: Object.fromEntries(
    [...resources].map(([typeName, { definition, attributes }]) => [
      typeName,
      resourceSchema(describedInTerraform(definition.description), attributes),
    ]),
  ),
  dataSourceSchemas: Object.fromEntries(
    [...dataSources()].map(([typeName, source]) => [typeName, dataSourceSchema(source)]),
  ),
  functions: functionSchemas(),
  ephemeralResourceSchemas: {
    [TOKEN]: lookupSchema(
      "The token of the credential's user for a namespace: whoever has it is that user, until it expires after days. It is in no state and no plan.",
      [{ ...TENANT, computed: true }],
      [{ ...TENANT, name: "token", description: "The token.", sensitive: true }],
    ),
  },
});

/** The provider as Terraform sees it: the methods of the service `Provider` in its plugin protocol. */
export class TerraformProvider {
  readonly #env: NodeJS.ProcessEnv;
  #configuration: Configuration;
  #calls: ResourceCalls;

  constructor(env: NodeJS.ProcessEnv = process.env) {
    this.#env = env;
    this.#configuration = new Configuration(env);
    this.#calls = new ResourceCalls(this.#configuration);
  }

  /** The methods, by the names that they have in the protocol. */
  methods() {
    const ofResource =
      <Name extends "validate" | "upgrade" | "move" | "read" | "plan" | "apply" | "import">(name: Name) =>
      (request: Parameters<ResourceCalls[Name]>[0]) =>
        this.#calls[name](request as never);
    return {
      GetProviderSchema: () => ({
        ...providerSchema(),
        serverCapabilities: { planDestroy: true, getProviderSchemaOptional: true, moveResourceState: true },
      }),
      ValidateProviderConfig: ({ config }: WithConfig) => ({
        diagnostics: new Configuration(this.#env, rowIn(config)).errors,
      }),
      ConfigureProvider: ({ config }: WithConfig) => ({ diagnostics: this.#configure(rowIn(config)) }),
      ValidateResourceConfig: ofResource("validate"),
      ValidateDataResourceConfig: () => ({}),
      ValidateEphemeralResourceConfig: () => ({}),
      UpgradeResourceState: ofResource("upgrade"),
      MoveResourceState: ofResource("move"),
      ReadResource: ofResource("read"),
      PlanResourceChange: ofResource("plan"),
      ApplyResourceChange: ofResource("apply"),
      ImportResourceState: ofResource("import"),
      ReadDataSource: (request: WithConfig) => this.#readData(request),
      OpenEphemeralResource: (request: WithConfig) => this.#openToken(request),
      CloseEphemeralResource: () => ({}),
      GetFunctions: () => ({ functions: functionSchemas() }),
      CallFunction: callFunction,
      StopProvider: () => {
        this.#calls.stop();
        return {};
      },
    };
  }

  /** A provider that is attached to is configured anew by every command. */
  #configure(row: Row): readonly Diagnostic[] {
    const configuration = new Configuration(this.#env, row);
    if (configuration.errors.length > 0) return configuration.errors;
    void this.#configuration.close();
    this.#configuration = configuration;
    this.#calls = new ResourceCalls(configuration);
    return [];
  }

  #readData({ typeName, config }: WithConfig): Promise<object> {
    return saying("Could not be read", async () => {
      const source = dataSources().get(typeName);
      if (!source) throw new Error(`${typeName}: is no data source of this provider`);
      const answer = await source.read(() => this.#configuration.reading(), rowIn(config));
      return isDiagnostics(answer) ? { diagnostics: answer } : { state: encoded(answer) };
    });
  }

  /** It is opened at plan and at apply: each time the token of the session that the provider has anyway. */
  #openToken({ typeName, config }: WithConfig): Promise<object> {
    return saying("No session token", async () => {
      if (typeName !== TOKEN) throw new Error(`${typeName}: is no ephemeral resource of this provider`);
      const { tenant: named } = valuesOf([TENANT], rowIn(config));
      const service = this.#configuration.service();
      const { tenant, client } = await service.tenant(named as string | undefined);
      return { result: encoded({ tenant, token: await client.sessionToken() }) };
    });
  }
}

const isDiagnostics = (answer: Row | readonly Diagnostic[]): answer is readonly Diagnostic[] =>
  Array.isArray(answer);
