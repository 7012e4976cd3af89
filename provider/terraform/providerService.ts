import { ConfigurationError } from "@gatehouse-access/sdk";
import type { Connection } from "../resources/connection.ts";
import { UnfinishedError } from "../resources/definition.ts";
import { definitions } from "../resources/index.ts";
import { objectMeant } from "../resources/objectMeant.ts";
import { hasUnknown } from "../resources/values.ts";
import { checkInstance, connectionOf, type Instance, settingsOf } from "../runtime/instanceSettings.ts";
import { defaultTenant, SETTINGS, type Setting } from "../runtime/newConnection.ts";
import { ResourceSteps, type Runtime } from "../runtime/resourceSteps.ts";
import { Run } from "../runtime/run.ts";
import { lookupSchema, resourceSchema } from "./attributes.ts";
import { dataSourceSchema, dataSourcesOf } from "./dataSources.ts";
import {
  attributePath,
  type Diagnostic,
  errorAt,
  errorDiagnostic,
  failureDiagnostic,
  warning,
} from "./diagnostics.ts";
import { functionSchema, providerFunctions } from "./providerFunctions.ts";
import { idIn, TerraformResource } from "./resource.ts";
import { type Member, type Row, type Type, terraformName, valuesOf } from "./types.ts";
import { decoded, decodedRow, encoded, parsed, type WireValue } from "./wireValues.ts";

interface OfType {
  readonly typeName: string;
}
interface WithConfig extends OfType {
  readonly config?: WireValue;
}
interface RawState {
  readonly json?: Uint8Array;
}

const STRING: Type = { kind: "string" };

/** The settings of a provider block. */
const SETTING_MEMBERS: readonly (Member & { readonly sensitive: boolean })[] = Object.entries(
  SETTINGS as Readonly<Record<string, Setting>>,
).map(([property, { variable, description, secret = false }]) => ({
  ...{ name: terraformName(property), property, type: STRING, required: false, sensitive: secret },
  description: `${description} Environment: \`${variable}\`, or \`${variable}_FILE\` for a file that holds it.`,
}));

/** The session token, an ephemeral resource. */
const TOKEN = "gatehouse_session_token";
const TENANT: Member = {
  name: "tenant",
  property: "tenant",
  type: STRING,
  description: "Id of the namespace. Left out: that of the provider.",
  required: false,
};

/** One provider configuration as Terraform sees it: the methods of the service `Provider` in its plugin protocol. */
export class ProviderService {
  readonly #env: NodeJS.ProcessEnv;
  readonly #resources = new Map(
    definitions.map((definition) => {
      const resource = new TerraformResource(definition);
      return [resource.typeName, resource];
    }),
  );
  readonly #dataSources = new Map(
    dataSourcesOf([...this.#resources.values()]).map((source) => [source.typeName, source]),
  );
  #instance: Instance | undefined;
  #connection: Connection | undefined;
  #isCancelled = false;
  #steps = this.#stepsOfRun();
  /** Ids of the objects whose resources were planned in this run. */
  #planned = new Set<string>();
  #made = 0;

  constructor(env: NodeJS.ProcessEnv = process.env) {
    this.#env = env;
  }

  #stepsOfRun(): ReadonlyMap<string, ResourceSteps> {
    const runtime: Runtime = {
      run: new Run(),
      defaultTenant: () => this.#defaultTenant(),
      isReplacementAsked: () => false,
      connection: () => this.#open(),
      tell: (message) => process.stderr.write(`[WARN] ${message}\n`),
    };
    return new Map(
      [...this.#resources].map(([typeName, { definition }]) => [
        typeName,
        new ResourceSteps(definition, runtime),
      ]),
    );
  }

  /** The methods, by the names that they have in the protocol. */
  methods() {
    return {
      GetProviderSchema: () => this.#schema(),
      ValidateProviderConfig: (request: WithConfig) => ({ diagnostics: this.#checkProvider(request) }),
      ConfigureProvider: (request: WithConfig) => ({ diagnostics: this.#configure(request) }),
      ValidateResourceConfig: this.#validateResource.bind(this),
      ValidateDataResourceConfig: () => ({}),
      ValidateEphemeralResourceConfig: () => ({}),
      UpgradeResourceState: this.#upgrade.bind(this),
      MoveResourceState: this.#move.bind(this),
      ReadResource: this.#read.bind(this),
      PlanResourceChange: this.#plan.bind(this),
      ApplyResourceChange: this.#apply.bind(this),
      ImportResourceState: this.#import.bind(this),
      ReadDataSource: this.#readData.bind(this),
      OpenEphemeralResource: this.#openEphemeral.bind(this),
      CloseEphemeralResource: () => ({}),
      GetFunctions: () => ({ functions: functionSchemas() }),
      CallFunction: callFunction,
      // What runs is done to its end, so that no object is made whose id nobody keeps; nothing else is begun.
      StopProvider: () => {
        this.#isCancelled = true;
        return {};
      },
    };
  }

  #schema() {
    const resources = [...this.#resources.values()];
    return {
      provider: lookupSchema(
        "A service, a credential and a namespace. What a configuration leaves open is taken from the environment; but no credential for another service than the environment names.",
        SETTING_MEMBERS,
        [],
      ),
      resourceSchemas: Object.fromEntries(
        resources.map(({ typeName, definition, attributes }) => [
          typeName,
          resourceSchema(definition.description, attributes),
        ]),
      ),
      dataSourceSchemas: Object.fromEntries(
        [...this.#dataSources].map(([typeName, source]) => [typeName, dataSourceSchema(source)]),
      ),
      functions: functionSchemas(),
      ephemeralResourceSchemas: {
        [TOKEN]: lookupSchema(
          "The token of the credential's user for a namespace: whoever has it is that user, until it expires after days. It is in no state and no plan.",
          [TENANT],
          [{ ...TENANT, name: "token", description: "The token.", sensitive: true }],
        ),
      },
      serverCapabilities: { planDestroy: true, getProviderSchemaOptional: true, moveResourceState: true },
    };
  }

  #instanceIn({ config }: WithConfig): Instance {
    // A provider block wins over the environment, as in every provider of Terraform.
    return { isDefault: false, inputs: valuesOf(SETTING_MEMBERS, decodedRow(config) ?? {}) };
  }

  #checkProvider(request: WithConfig): Diagnostic[] {
    const { failures } = checkInstance(this.#instanceIn(request), {}, this.#env);
    return failures.map(({ property, reason }) =>
      errorAt(property ? [terraformName(property)] : [], "Invalid provider configuration", reason),
    );
  }

  #configure(request: WithConfig): Diagnostic[] {
    const wrong = this.#checkProvider(request);
    if (wrong.length > 0) return wrong;
    // A provider that is attached to serves one command after the other.
    const before = this.#connection;
    void before?.client.close();
    this.#connection = undefined;
    this.#instance = this.#instanceIn(request);
    this.#isCancelled = false;
    this.#steps = this.#stepsOfRun();
    this.#planned = new Set();
    return [];
  }

  #validateResource(
    request: WithConfig & { readonly clientCapabilities?: { writeOnlyAttributesAllowed?: boolean } },
  ) {
    return this.#withResource(request, (resource, steps) => {
      const config = rowIn(request.config);
      const isAllowed = request.clientCapabilities?.writeOnlyAttributesAllowed ?? false;
      const unsupported = isAllowed
        ? []
        : resource.attributes
            .filter(({ role, name }) => role === "secret" && config[name] !== null)
            .map(({ name }) =>
              errorAt(
                [name],
                `${name} needs a newer Terraform`,
                `${name} is a write-only attribute, which Terraform has from 1.11 on`,
              ),
            );
      const failures = resource.validate(steps, config);
      return {
        diagnostics: [
          ...unsupported,
          ...failures.map((failure) => failureDiagnostic(resource.definition, failure)),
        ],
      };
    });
  }

  #upgrade(request: OfType & { readonly rawState?: RawState }) {
    return this.#withResource(request, (resource) => ({
      upgradedState: encoded(upgraded(resource, request.rawState)),
    }));
  }

  #move(request: {
    readonly sourceProviderAddress?: string;
    readonly sourceTypeName?: string;
    readonly sourceState?: RawState;
    readonly targetTypeName: string;
  }) {
    const { targetTypeName: typeName, sourceTypeName = "", sourceProviderAddress = "" } = request;
    return this.#withResource({ typeName }, (resource) => {
      const isOwn = sourceProviderAddress.split("/").at(-1) === "gatehouse";
      if (isOwn && sourceTypeName === typeName) {
        return { targetState: encoded(upgraded(resource, request.sourceState)) };
      }
      const detail = `a ${sourceTypeName} of ${sourceProviderAddress} is no ${typeName}; remove it from the state by a removed block, and import it as what it is to be`;
      return { diagnostics: [errorAt([], "Unsupported move", detail)] };
    });
  }

  #read(request: OfType & { readonly currentState?: WireValue; readonly private?: Uint8Array }) {
    return this.#withResource(request, async (resource, steps) => {
      const current = rowIn(request.currentState);
      const kept = { private: request.private };
      if (this.#isUnknown()) {
        const detail = `${resource.typeName} ${idIn(current)} stays as the state has it: a part of the provider configuration is not known before apply`;
        return { ...kept, newState: request.currentState, diagnostics: [warning("Not refreshed", detail)] };
      }
      try {
        const found = await steps.read(undefined, idIn(current), resource.valuesIn(current));
        return { ...kept, newState: encoded(found && resource.row(found, current)) };
      } catch (error) {
        return {
          ...kept,
          newState: request.currentState,
          diagnostics: [errorDiagnostic(resource.definition, error, "could not be read")],
        };
      }
    });
  }

  #plan(
    request: WithConfig & {
      readonly priorState?: WireValue;
      readonly proposedNewState?: WireValue;
      readonly priorPrivate?: Uint8Array;
    },
  ) {
    return this.#withResource(request, (resource, steps) => {
      const proposed = decodedRow(request.proposedNewState);
      const kept = { plannedPrivate: request.priorPrivate };
      if (!proposed) return { ...kept, plannedState: encoded(null) };
      const prior = decodedRow(request.priorState);
      const name = this.#nameOf(resource, prior, request.priorPrivate);
      const twin = prior && this.#twinOf(resource, idIn(prior));
      if (twin) return { ...kept, diagnostics: [twin] };
      const { planned, replaces, failures } = resource.plan(steps, name, rowIn(request.config), prior);
      return {
        plannedState: encoded(planned),
        requiresReplace: replaces.map((attribute) => attributePath(attribute)),
        // The create that takes the place of this object is asked about next, and has no state.
        plannedPrivate:
          replaces.length > 0 ? Buffer.from(JSON.stringify({ replaces: name })) : request.priorPrivate,
        diagnostics: failures.map((failure) => failureDiagnostic(resource.definition, failure)),
      };
    });
  }

  /** What a resource is called in errors about two that have one object. Terraform tells no provider its address. */
  #nameOf({ typeName }: TerraformResource, prior: Row | undefined, marked: Uint8Array | undefined): string {
    if (prior) return `::${typeName}::${idIn(prior)}`;
    const { replaces } = marked?.length ? (parsed(marked) as { readonly replaces?: string }) : {};
    if (replaces !== undefined) return replaces;
    this.#made += 1;
    return `::${typeName}::new ${this.#made}`;
  }

  #twinOf({ typeName }: TerraformResource, id: string): Diagnostic | undefined {
    const key = `${typeName} ${id}`;
    const isTwin = this.#planned.has(key);
    this.#planned.add(key);
    return isTwin
      ? errorAt(
          [],
          "Two resources with one object",
          `${key} is in the state of another resource of this configuration too; remove one of the two from the state (a removed block, or terraform state rm)`,
        )
      : undefined;
  }

  #apply(
    request: WithConfig & {
      readonly priorState?: WireValue;
      readonly plannedState?: WireValue;
      readonly plannedPrivate?: Uint8Array;
    },
  ) {
    return this.#withResource(request, async (resource, steps) => {
      const prior = decodedRow(request.priorState);
      const planned = decodedRow(request.plannedState);
      const config = decodedRow(request.config) ?? {};
      const { definition } = resource;
      const [verb, kept] = !prior ? ["made", undefined] : planned ? ["changed", prior] : ["removed", prior];
      const secrets = resource.secretsIn(config);
      const failed = (error: unknown, state: Row | undefined = kept, what = `could not be ${verb}`) => ({
        newState: encoded(state),
        diagnostics: [errorDiagnostic(definition, error, what, secrets)],
      });
      if (this.#isCancelled) return failed(new Error("not begun: the run was cancelled"));
      try {
        if (!planned) {
          if (prior) await steps.delete(undefined, idIn(prior), resource.valuesIn(prior));
          return { newState: encoded(null) };
        }
        if (!prior) return { newState: encoded(await resource.create(steps, config, planned)) };
        const { row, left } = await resource.update(steps, config, prior, planned);
        return left === undefined
          ? { newState: encoded(row) }
          : failed(
              left,
              row,
              "was made anew, but the old one could not be removed; the next apply tries again",
            );
      } catch (error) {
        if (!(error instanceof UnfinishedError) || error.wasThere) return failed(error);
        // Terraform makes it anew: of a create that failed, it takes nothing for finished.
        return failed(
          new Error(error.reason),
          resource.unfinished(error, planned ?? {}),
          "was made, but not completed",
        );
      }
    });
  }

  #import(request: OfType & { readonly id: string }) {
    return this.#withResource(request, async (resource) => {
      try {
        const { id } = await objectMeant(resource.definition, this.#service(), request.id);
        return {
          importedResources: [{ typeName: request.typeName, state: encoded(resource.rowOfId(id)) }],
        };
      } catch (error) {
        return { diagnostics: [errorDiagnostic(resource.definition, error, "could not be imported")] };
      }
    });
  }

  async #readData(request: WithConfig) {
    const source = this.#dataSources.get(request.typeName);
    if (!source) throw new Error(`${request.typeName}: is no data source of this provider`);
    return saying("Could not be read", async () => {
      const answer = await source.read(() => this.#service(), rowIn(request.config));
      return isDiagnostics(answer) ? { diagnostics: answer } : { state: encoded(answer) };
    });
  }

  async #openEphemeral(request: WithConfig) {
    if (request.typeName !== TOKEN)
      throw new Error(`${request.typeName}: is no ephemeral resource of this provider`);
    return saying("No session token", async () => {
      const { tenant: named } = valuesOf([TENANT], rowIn(request.config));
      const { tenant, client } = await this.#service().tenant(named as string | undefined);
      return { result: encoded({ tenant, token: await client.sessionToken() }) };
    });
  }

  /** Answers for a resource; what goes wrong beside its steps is said as well. */
  #withResource<Answer extends object>(
    { typeName }: OfType,
    work: (resource: TerraformResource, steps: ResourceSteps) => Answer | Promise<Answer>,
  ): Promise<object> {
    return saying(`${typeName} failed`, async () => {
      const resource = this.#resources.get(typeName);
      const steps = this.#steps.get(typeName);
      if (!resource || !steps) throw new Error(`${typeName}: is no resource of this provider`);
      return work(resource, steps);
    });
  }

  #defaultTenant(): string | undefined {
    const instance = this.#instance;
    return instance && defaultTenant(() => undefined, settingsOf(instance, this.#env));
  }

  /** True where a part of the provider configuration is not known yet. */
  #isUnknown(): boolean {
    return hasUnknown(this.#instance?.inputs);
  }

  #service(): Connection {
    if (this.#isCancelled) throw new Error("the run was cancelled");
    return this.#open();
  }

  #open(): Connection {
    if (!this.#instance) throw new ConfigurationError("the provider is not configured");
    if (this.#isUnknown()) {
      throw new ConfigurationError(
        "a part of the provider configuration is not known before apply, so the service cannot be asked now; make what it depends on first (terraform apply -target=…), or give a value that is known",
      );
    }
    this.#connection ??= connectionOf(this.#instance, this.#env);
    return this.#connection;
  }
}

const rowIn = (value: WireValue | undefined): Row => decodedRow(value) ?? {};

const isDiagnostics = (answer: Row | readonly Diagnostic[]): answer is readonly Diagnostic[] =>
  Array.isArray(answer);

/** Work whose failure is told to whoever runs Terraform. */
async function saying<Answer extends object>(
  summary: string,
  work: () => Answer | Promise<Answer>,
): Promise<object> {
  try {
    return await work();
  } catch (error) {
    return { diagnostics: [errorAt([], summary, error instanceof Error ? error.message : String(error))] };
  }
}

/** A state that another version wrote: what attributes are called now, without those that are no more. */
function upgraded({ attributes }: TerraformResource, raw: RawState | undefined): Row {
  const state = (raw?.json?.length ? parsed(raw.json) : {}) as Row;
  return Object.fromEntries(attributes.map(({ name }) => [name, state[name] ?? null]));
}

const functionSchemas = () =>
  Object.fromEntries(providerFunctions.map((called) => [called.name, functionSchema(called)]));

function callFunction({
  name,
  arguments: given = [],
}: {
  readonly name: string;
  readonly arguments?: WireValue[];
}) {
  const called = providerFunctions.find((one) => one.name === name);
  if (!called) return { error: { text: `${name}: is no function of this provider` } };
  try {
    return { result: encoded(called.call(...given.map((value) => String(decoded(value))))) };
  } catch (error) {
    return { error: { text: error instanceof Error ? error.message : String(error) } };
  }
}
