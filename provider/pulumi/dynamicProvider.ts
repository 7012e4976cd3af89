import { AuthenticationError, PermissionError } from "@gatehouse-access/sdk";
import type { dynamic } from "@pulumi/pulumi";
import { bring } from "../resources/bring.ts";
import { check } from "../resources/check.ts";
import { TwinError } from "../resources/claims.ts";
import type { Connection } from "../resources/connection.ts";
import { type Existing, type ResourceDefinition, UnfinishedError } from "../resources/definition.ts";
import { diff } from "../resources/diff.ts";
import { isMissingObject, isNoToken, isSilent } from "../resources/missingObject.ts";
import { canonicalInputs, hasUnknown, sameValue } from "../resources/values.ts";
import { PROVIDER_KEY, SECRET, SIGNATURE } from "../valueMarks.ts";
import { LOGICAL_ID, STATE_ID } from "./closure.ts";
import type { Lookup } from "./newConnection.ts";
import type { Creator, Run } from "./run.ts";

type Values = Record<string, unknown>;

/** Inputs that no definition has. */
const HIDDEN: readonly string[] = [PROVIDER_KEY, LOGICAL_ID, STATE_ID];

/** What the providers of one run share. */
export interface Runtime {
  readonly run: Run;
  /** Takes the stack's configuration; an engine calls it before all else. */
  configure(lookup: Lookup): void;
  /** The namespace of resources that name none, as far as settings tell. */
  defaultTenant(): string | undefined;
  /** True when `gatehouse` was told to replace the resource of this URN; no engine shows that to a provider. */
  isReplacementAsked(urn: string): boolean;
  /**
   * The connection of the run, opened when the first resource needs the service.
   * @throws ConfigurationError naming the variable that is missing or wrong, with what is allowed
   */
  connection(): Connection;
}

/** The dynamic provider of one declarative resource. Its check and diff make no request. */
export function dynamicProvider(
  definition: ResourceDefinition,
  { run, configure, connection, defaultTenant, isReplacementAsked }: Runtime,
): dynamic.ResourceProvider {
  // An input that is left out is never compared. Filled in, the namespace is.
  const withTenant = (given: Values): Values =>
    definition.inputs.tenant && !given.tenant ? { ...given, tenant: defaultTenant() } : given;
  // The engines show what a provider prints as a message of the run.
  const onService = async <T>(step: (service: Connection) => Promise<T>) => {
    const service = connection();
    return service.telling(console.log, () => step(service));
  };
  return {
    async configure({ config }) {
      configure((key) => config.get(key));
    },

    async check(olds: Values, news: Values) {
      const checked = check(definition, withTenant(ownInputs(news)));
      const failures = [...checked.failures];
      if (failures.length === 0) failures.push(...twins(run, definition, news, checked.inputs, olds));
      // The reason names the property already, and engines would put it before the reason once more.
      const told = failures.map(({ reason }) => ({ property: "", reason }));
      return { inputs: { ...checked.inputs, ...hidden(news) }, failures: told };
    },

    async diff(id, olds: Values, news: Values) {
      const state = ownInputs(olds);
      const changes = diff(definition, state, ownInputs(news));
      const resource = logicalId(news);
      const replaces = changes.filter((change) => change.replaces).map((change) => change.field);
      if (resource !== undefined && isReplacementAsked(resource)) replaces.push("id");
      run.compared(definition, resource, { id, state }, replaces.length > 0);
      return { changes: changes.length + replaces.length > 0, replaces };
    },

    async create(inputs: Values) {
      const given = ownInputs(inputs);
      const origin = run.origin(definition, whoIs(inputs), given);
      try {
        const made = await onService((connection) =>
          bring({ definition, connection, inputs: given, origin }),
        );
        run.created(definition, logicalId(inputs), made);
        return { id: made.id, outs: outputs(definition, inputs, made.state) };
      } catch (error) {
        if (!(error instanceof UnfinishedError)) throw error;
        origin.claim(error.id);
        throw new ResourceInitError(definition, error, inputs);
      }
    },

    async update(id, olds: Values, news: Values) {
      const changed = await onService((service) =>
        definition.update(service, id, ownInputs(olds), ownInputs(news)),
      ).catch((error: unknown) => {
        throw isMissingObject(error) ? gone(definition, id, error) : error;
      });
      return { outs: outputs(definition, news, changed) };
    },

    async read(id, props: Values = {}) {
      const given = ownInputs(props);
      const isImport = !isState(definition, given);
      const state = isImport ? {} : given;
      const found = await onService((service) =>
        goneIsUndefined(service, state.tenant, () => definition.read(service, id, state)),
      );
      if (!found) return {};
      const kept = keepVolatile(definition, state, found);
      // Inputs are what the program says. Only for an import they are made of what was read; else drift shows in the
      // outputs.
      const inputs = isImport ? inputsOf(definition, props, kept.state) : undefined;
      return { id: kept.id, props: outputs(definition, props, kept.state), ...(inputs && { inputs }) };
    },

    async delete(id, props: Values) {
      if (run.isHeld(definition, id)) return;
      const state = ownInputs(props);
      await onService((service) => {
        const step = () => definition.delete(service, id, state, (key) => run.isClaimed(key));
        const isThere = async () => {
          await service.forget();
          return (await definition.read(service, id, state))?.id === id;
        };
        return goneIsUndefined(service, state.tenant, step, isThere);
      });
    },
  };
}

/** True for the values of a state; for an import, an engine gives the program's inputs at most. */
function isState({ outputs }: ResourceDefinition, given: Values): boolean {
  const decided = Object.keys(outputs);
  return decided.length === 0
    ? Object.keys(given).length > 0
    : decided.some((name) => given[name] !== undefined);
}

/** The values without those that no definition has. */
function ownInputs(values: Values): Values {
  return Object.fromEntries(Object.entries(values).filter(([name]) => !HIDDEN.includes(name)));
}

function hidden(values: Values): Values {
  return Object.fromEntries(Object.entries(values).filter(([name]) => HIDDEN.includes(name)));
}

function logicalId(values: Values): string | undefined {
  const value = values[LOGICAL_ID];
  return typeof value === "string" ? value : undefined;
}

function whoIs(values: Values): Creator {
  const { [STATE_ID]: state } = values;
  // It is unknown when the run is limited to resources other than the one that holds the state's id.
  const isKnown = typeof state === "string" && !hasUnknown(state);
  return { resource: logicalId(values), state: isKnown ? state : undefined };
}

function twins(run: Run, definition: ResourceDefinition, news: Values, inputs: Values, olds: Values) {
  try {
    run.checked(definition, logicalId(news), inputs, Object.keys(olds).length === 0 ? undefined : olds);
    return [];
  } catch (error) {
    if (!(error instanceof TwinError)) throw error;
    const { property, message } = error;
    return [{ property, reason: `${definition.name}.${property}: ${message}` }];
  }
}

// The mark by which a provider tells the engines that a value is secret.
const secretMark = (value: unknown) => ({ [SIGNATURE]: SECRET, value });

// An undefined value would make the engine refuse the outputs after the object was made, and so lose the object.
function outputs(definition: ResourceDefinition, from: Values, state: Readonly<Values>): Values {
  const defined = Object.entries(state)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => [name, definition.outputs[name]?.secret ? secretMark(value) : value] as const);
  return { ...Object.fromEntries(defined), [PROVIDER_KEY]: from[PROVIDER_KEY] };
}

function inputsOf(definition: ResourceDefinition, props: Values, state: Readonly<Values>): Values {
  return { ...canonicalInputs(definition.inputs, state), ...hidden(props) };
}

/**
 * Reads or deletes an object; undefined when somebody else removed it, or the namespace that it was in.
 * @param isThere called after a 404 without a message, which may come from a proxy: true when the object is there
 * @throws Error when the credential's user is no member of the namespace, so that nothing is known of the object
 */
async function goneIsUndefined<T>(
  connection: Connection,
  tenant: unknown,
  step: () => Promise<T>,
  isThere: () => Promise<boolean> = async () => true,
): Promise<T | undefined> {
  try {
    return await step();
  } catch (error) {
    if (isMissingObject(error)) {
      if (isSilent(error) && (await isThere())) throw error;
      return undefined;
    }
    const isRefused = isNoToken(error) || error instanceof AuthenticationError;
    if (!isRefused || typeof tenant !== "string") throw error;
    // When the namespace was deleted, the object is gone too; when the user's membership was ended, it is not.
    if (await isGone(connection, tenant)) return undefined;
    throw isNoToken(error) ? noMember(tenant, error) : error;
  }
}

function noMember(tenant: string, cause: unknown): Error {
  return new Error(
    `credential: its user is no member of the namespace ${tenant}, so that nothing is known of what is in it; make it one (again), or use another credential`,
    { cause },
  );
}

function gone({ name }: ResourceDefinition, id: string, cause: unknown): Error {
  return new Error(
    `${name}: ${id}, or what it belongs to, is gone: somebody removed it since the state was written; run with --refresh, so that it is made again`,
    { cause },
  );
}

async function isGone({ client, namespaces }: Connection, tenant: string): Promise<boolean> {
  try {
    await client.getNamespace({ params: { tenant } });
    return false;
  } catch (error) {
    if (isMissingObject(error)) {
      if (!isSilent(error)) return true;
      namespaces.forget();
      return (await namespaces.all()).every(({ tenantId }) => tenantId !== tenant);
    }
    // With 403 it is there, and others' own. Without a token nothing is known, so nothing counts as gone.
    if (error instanceof PermissionError || isNoToken(error)) return false;
    throw error;
  }
}

/** The object as found, but with the state's volatile outputs where no input changed: such changes are no drift. */
function keepVolatile(
  definition: ResourceDefinition,
  before: Values,
  found: Existing<Values>,
): Existing<Values> {
  const inputsSame = Object.entries(definition.inputs).every(([name, field]) =>
    sameValue(field, before[name], found.state[name]),
  );
  if (!inputsSame) return found;
  const volatile = Object.entries(definition.outputs).filter(
    ([name, field]) => field.volatile && before[name] !== undefined,
  );
  const kept = volatile.map(([name]) => [name, before[name]] as const);
  return { id: found.id, state: { ...found.state, ...Object.fromEntries(kept) } };
}

/** An object that was made but not completed, in the form that engines expect. */
class ResourceInitError extends Error {
  readonly id: string;
  readonly properties: Values;
  readonly reasons: string[];

  constructor(definition: ResourceDefinition, failure: UnfinishedError, inputs: Values) {
    super(failure.message);
    this.id = failure.id;
    this.properties = outputs(definition, inputs, failure.state);
    this.reasons = [failure.reason];
  }
}
