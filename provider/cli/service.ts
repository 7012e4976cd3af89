import {
  EngineError,
  openStack,
  type Stack,
  type StackOptions,
  StackSelectionError,
  type StateResource,
} from "../engine/index.ts";
import type { OwnResource } from "../namespace/coverage.ts";
import type { Connection, FrontEnd, Home } from "../service/connection.ts";
import { printable } from "../words.ts";
import type { Io } from "./commandOutput.ts";
import { type ConfigurationFlags, type StackFlags, stackOptionsOf } from "./flags.ts";
import { colors, progressLine } from "./render.ts";

/**
 * Calls `work` with a connection to the service, and closes the connection afterwards.
 * @param configuration settings of the stack by `namespace:key`, with decrypted secrets. Environment variables override
 *   these settings.
 * @throws ConfigurationError with the name of the missing or invalid variable
 */
export async function withConnection<T>(
  io: Io,
  configuration: ReadonlyMap<string, string>,
  work: (connection: Connection) => Promise<T>,
  frontEnd?: FrontEnd,
): Promise<T> {
  // Imported here because some commands need no client, and the import would slow down the start of these commands.
  const { newConnection } = await import("../service/newConnection.ts");
  const lookup = (key: string) => configuration.get(key);
  const connection = newConnection(lookup, { tell: printerOf(io) }, io.env, frontEnd);
  try {
    return await withReleaseNote(io, connection, () => work(connection));
  } finally {
    await connection.client.close();
  }
}

/**
 * Calls `work`. If `work` fails and the release of the service differs from the release of this program, also prints a
 * note about the releases.
 */
export const withReleaseNote = <T>(io: Io, connection: Connection, work: () => Promise<T>): Promise<T> =>
  connection.telling(printerOf(io), work);

const printerOf =
  ({ stderr }: Io) =>
  (line: string): unknown =>
    stderr.write(`${line}\n`);

const TENANT_KEY = "gatehouse:tenant";

/** A namespace that the run creates after the confirmation of its plan. */
interface PlannedNamespace {
  readonly name: string;
  /** Creates the namespace. Resolves with its id. Later calls resolve with the same id. */
  readonly create: () => Promise<string>;
}

/** The service that a command connects to, and the default namespace for resources that do not set a namespace. */
export interface Service extends Home {
  readonly connection: Connection;
  /** The namespace that the run will create. If it is set, `tenant` is undefined. */
  readonly planned?: PlannedNamespace;
  /** Writes the namespace to the stack's configuration, for later runs. Resolves with a sentence to print. */
  readonly pin: () => Promise<string | undefined>;
  readonly text: string;
}

/** The value of `--create-namespace`, and when to create the namespace if it does not exist. */
interface CreateNamespace {
  readonly name: string;
  /** True to create the namespace when the stack is opened, false to create it after the confirmation. */
  readonly isConfirmed: boolean;
}

/** A stack, and the service that stores its objects. */
export interface StackOnService {
  readonly stack: Stack;
  /** The service; undefined if no address is set. */
  readonly service: Service | undefined;
  /**
   * The command's streams, and its environment with the determined namespace. Pass this value, not the `io` of the
   * command, to all further work with the stack.
   */
  readonly io: Io;
}

/** Returns the service of a stack. @throws EngineError (`service`) if no address is set */
export function requireService(service: Service | undefined): Service {
  if (service) return service;
  throw new EngineError("service", "is not set", {
    field: ["GATEHOUSE_URL"],
    remedy:
      "Set GATEHOUSE_URL, or gatehouse:url in the stack's configuration, to the address of the service, for example https://access.example.org.",
  });
}

/**
 * Opens a stack, and determines the default namespace for resources that do not set a namespace. A plan, its review and
 * its run then use the same namespace. The caller closes the connection.
 * @param createNamespace the namespace to use if no setting and no resource determines a namespace. The namespace is
 *   created unless the user is already a member of a namespace with this name.
 * @throws the errors of opening the stack; RequestError if the service or the credential fails; ConfigurationError if a
 *   setting is invalid
 */
export async function openOnService(
  io: Io,
  options: Omit<StackOptions, "env">,
  createNamespace?: CreateNamespace,
): Promise<StackOnService> {
  const { env } = io;
  const stack = await openStack({ ...options, env });
  const { newConnection, settings } = await import("../service/newConnection.ts");
  const configuration = isComplete(env) ? new Map<string, string>() : await configurationIfAny(stack);
  const lookup = (key: string) => configuration.get(key);
  if (!isSet(settings(lookup, env), "GATEHOUSE_URL")) return { stack, service: undefined, io };
  const connection = newConnection(lookup, { tell: printerOf(io), stop: options.signal }, env);
  try {
    const { tenant, unsettled, isConfigured, reason, missing } = await withReleaseNote(io, connection, () =>
      homeOf(env, stack, connection, createNamespace),
    );
    const { url } = connection.client;
    const planned = missing === undefined ? undefined : plannedNamespace(connection, missing);
    const text = planned
      ? `${printable(planned.name)} on ${url}, which this run creates after the confirmation`
      : tenant === undefined
        ? `${url}; no namespace is set`
        : await describe(connection, tenant, reason);
    const service = { connection, tenant, unsettled, text, ...(planned && { planned }) };
    if ((tenant === undefined && !planned) || isConfigured)
      return { stack, service: { ...service, pin: async () => undefined }, io };
    // The environment also contains the address of the service. So the plugin uses the namespace only for provider
    // instances of this service.
    const serviceUrl = isSet(env, "GATEHOUSE_URL") ? {} : { GATEHOUSE_URL: url };
    // In a preview, the id of a namespace that does not exist yet is an unknown value.
    const { UNKNOWN } = await import("../engineMarks.ts");
    const namedIo = { ...io, env: { ...env, ...serviceUrl, GATEHOUSE_TENANT: tenant ?? UNKNOWN } };
    // The stack is opened again, because an open stack keeps the environment from the time when it was opened.
    const reopened = await openStack({ ...options, env: namedIo.env });
    const pin = async () => {
      const id = tenant ?? (await planned?.create());
      if (id === undefined) return undefined;
      await reopened.setConfig(TENANT_KEY, id);
      return `Set ${TENANT_KEY} to ${id} in the stack's configuration.`;
    };
    return { stack: reopened, service: { ...service, pin }, io: namedIo };
  } catch (error) {
    await connection.client.close();
    throw error;
  }
}

/**
 * Opens a stack for a review, and determines its namespace. Prints engine messages and the text about the namespace to
 * the standard error, so that the standard output contains only the review.
 */
export async function openForReview(
  io: Io,
  folder: string,
  flags: StackFlags,
): Promise<Pick<StackOnService, "stack" | "io">> {
  const { service, ...opened } = await openOnService(io, readerOptions(io, folder, flags));
  if (service) {
    io.stderr.write(`Namespace: ${service.text}\n`);
    await service.connection.client.close();
  }
  return opened;
}

/** Returns the options for commands that only read. Messages of the engine are printed to the standard error. */
export function readerOptions({ stderr, env }: Io, folder: string, flags: StackFlags): StackOptions {
  const c = colors(stderr, env);
  return {
    ...stackOptionsOf(folder, flags),
    onEvent: (event) => {
      const line = event.kind === "diagnostic" || event.kind === "phase" ? progressLine(c, event) : undefined;
      if (line !== undefined) stderr.write(`${line}\n`);
    },
  };
}

const isSet = (env: NodeJS.ProcessEnv, name: string) => Boolean(env[name] ?? env[`${name}_FILE`]);

/** Returns true if the environment contains all settings. The stack's configuration is then not read. */
const isComplete = (env: NodeJS.ProcessEnv) =>
  isSet(env, "GATEHOUSE_TENANT") &&
  ["GATEHOUSE_OIDC", "GATEHOUSE_API_KEY", "GATEHOUSE_TOKEN", "GATEHOUSE_PASSWORD"].some((name) =>
    isSet(env, name),
  ) &&
  // For an https URL, the stack's configuration may contain trusted certificate authorities. So the configuration is
  // needed unless GATEHOUSE_CA_FILE is set.
  (env.GATEHOUSE_URL?.startsWith("http:") || (isSet(env, "GATEHOUSE_URL") && Boolean(env.GATEHOUSE_CA_FILE)));

async function configurationIfAny(stack: Stack): Promise<ReadonlyMap<string, string>> {
  try {
    return await stack.config();
  } catch (error) {
    if (error instanceof StackSelectionError) return new Map();
    throw error;
  }
}

interface DeterminedHome extends Home {
  /**
   * True if a setting selects the namespace. Later runs then read the same setting, so the namespace is not written to
   * the stack's configuration.
   */
  readonly isConfigured: boolean;
  readonly reason: string;
  /** The name of a namespace that does not exist. The run creates the namespace after the confirmation. */
  readonly missing?: string;
}

async function homeOf(
  env: NodeJS.ProcessEnv,
  stack: Stack,
  connection: Connection,
  createNamespace: CreateNamespace | undefined,
): Promise<DeterminedHome> {
  const unneeded = createNamespace === undefined ? "" : "; --create-namespace was not needed";
  const home = (tenant: string, reason: string, isConfigured = false): DeterminedHome => {
    return { tenant, reason, isConfigured, unsettled: undefined };
  };
  if (connection.defaultTenant !== undefined) {
    const by = isSet(env, "GATEHOUSE_TENANT") ? "GATEHOUSE_TENANT" : "the stack's configuration";
    return home(connection.defaultTenant, `by ${by}${unneeded}`, true);
  }
  const [only, ...others] = homesOf(await resourcesOf(stack, connection));
  if (others.length > 0) {
    const { ConfigurationError } = await import("@gatehouse-access/sdk");
    const unsettled = new ConfigurationError(
      `The stack's resources without a namespace are in ${others.length + 1} namespaces: ${[only, ...others].sort().join(", ")}.`,
      {
        field: ["tenant"],
        remedy: `Set the input tenant on the resources of all namespaces except one, and set ${TENANT_KEY} to the id of this namespace.`,
      },
    );
    return { tenant: undefined, unsettled, isConfigured: false, reason: "" };
  }
  if (only !== undefined) return home(only, `by the stack's resources${unneeded}`);
  if (createNamespace === undefined) {
    const reason = "the only namespace of the credential";
    return { ...(await connection.homeIfAny()), isConfigured: false, reason };
  }
  const { name, isConfirmed } = createNamespace;
  const known = (await connection.namespaces.all()).find(
    (namespace) => namespace.name === name.toLowerCase(),
  );
  if (known) return home(known.tenantId, "by --create-namespace, which found this namespace");
  if (isConfirmed)
    return home(await plannedNamespace(connection, name).create(), "created by --create-namespace");
  return { tenant: undefined, unsettled: undefined, isConfigured: false, reason: "", missing: name };
}

/**
 * Returns the namespaces that contain the objects of resources that do not set a namespace.
 * After a run with a namespace setting, every resource in the state sets a namespace. In this case, returns the
 * namespace of the objects outside the namespaces that the stack declares. Returns an empty list if these objects are
 * in several namespaces.
 */
function homesOf(resources: readonly OwnResource[]): string[] {
  const own = resources.flatMap(({ definition, inputs = {}, outputs = {} }) => {
    const { tenant } = outputs;
    const isNamespace = definition.outputs.tenant?.isId === true;
    return typeof tenant === "string" ? [{ isNamespace, isNamed: Boolean(inputs.tenant), tenant }] : [];
  });
  const inside = own.filter(({ isNamespace }) => !isNamespace);
  const unnamed = inside.filter(({ isNamed }) => !isNamed);
  if (unnamed.length > 0) return tenantsOf(unnamed);
  const declared = tenantsOf(own.filter(({ isNamespace }) => isNamespace));
  const others = tenantsOf(inside).filter((tenant) => !declared.includes(tenant));
  return others.length === 1 ? others : [];
}

const tenantsOf = (resources: readonly { readonly tenant: string }[]) => [
  ...new Set(resources.map(({ tenant }) => tenant)),
];

function plannedNamespace({ client, namespaces }: Connection, name: string): PlannedNamespace {
  let created: Promise<string> | undefined;
  const create = async () => {
    const namespace = await client.createNamespace({ body: { name } });
    namespaces.put(namespace);
    return namespace.tenantId;
  };
  return {
    name,
    create() {
      created ??= create();
      return created;
    },
  };
}

async function describe(connection: Connection, tenant: string, reason: string): Promise<string> {
  const { NotFoundError, PermissionError } = await import("@gatehouse-access/sdk");
  const { url } = connection.client;
  try {
    const namespace = await connection.namespaces.find(tenant);
    const name = namespace ? `${printable(namespace.name)} (${tenant})` : `${tenant}, which does not exist,`;
    return `${name} on ${url}, ${reason}`;
  } catch (error) {
    // The run reports this error later.
    if (!(error instanceof NotFoundError || error instanceof PermissionError)) throw error;
    return `${tenant} on ${url}, ${reason}`;
  }
}

/** Returns the Gatehouse resources in a stack's state that belong to the connected service. */
export async function resourcesOf(stack: Stack, { client }: Connection): Promise<OwnResource[]> {
  // Imported here because most commands do not need the definitions of resources.
  const { ownResources } = await import("../namespace/coverage.ts");
  return ownResources(await stack.resources(), client.url);
}

/**
 * Returns the Gatehouse resources of the stack whose configuration a command uses. Returns an empty list if the command
 * uses no stack.
 */
export async function configuredResources(
  { env }: Io,
  folder: string,
  { stack, engine }: ConfigurationFlags,
  connection: Connection,
): Promise<OwnResource[]> {
  if (stack === undefined) return [];
  return resourcesOf(await openStack({ folder, stack, env, engine }), connection);
}

/** Returns all resources of a stack. @throws EngineError (`usage`) if there are none */
export async function requireResources(stack: Stack): Promise<readonly StateResource[]> {
  const resources = await stack.resources();
  if (resources.length > 0) return resources;
  throw new EngineError(
    "usage",
    `The stack ${stack.selector} does not exist or has no resources. Check --stack and the address of the states.`,
  );
}

/** Returns the Gatehouse resources in all stacks of `--with-stack`. @throws EngineError if a stack cannot be read */
export async function otherResources(
  { env, stderr }: Io,
  folder: string,
  { withStack = [], engine }: Pick<ConfigurationFlags, "engine"> & { readonly withStack?: readonly string[] },
  connection: Connection,
): Promise<OwnResource[]> {
  const all: OwnResource[] = [];
  for (const named of withStack) {
    const [, otherFolder = folder, name = named] = /^(.+):([^:]+)$/.exec(named) ?? [];
    const other = await openStack({ folder: otherFolder, stack: name, env, engine });
    const resources = await resourcesOf(other, connection);
    if (resources.length === 0)
      stderr.write(`warning: the stack ${named} (--with-stack) does not exist or has no resources\n`);
    all.push(...resources);
  }
  return all;
}
