import { OWN_TYPE, openStack, type Stack, type StackOptions, StackSelectionError } from "../engine/index.ts";
import type { Connection } from "../resources/connection.ts";

/** The configuration by which a stack stays in one namespace. */
const TENANT_KEY = "gatehouse:tenant";

/** The service of a run, and the namespace that is meant where a resource names none. */
export interface Service {
  readonly connection: Connection;
  /** Undefined where none can be meant; `unsettled` says why. */
  readonly tenant: string | undefined;
  readonly unsettled: Error | undefined;
  /** Both, for people. */
  readonly text: string;
}

/** A stack, and where its objects are; without a service where no address is set. */
export interface OnService {
  readonly stack: Stack;
  readonly service: Service | undefined;
}

/** What becomes of the namespace. */
export interface Settling {
  /** Write it into the stack's configuration, so that every later run means the same one. */
  readonly pin?: boolean;
  /** Make a namespace of this name where the user is in none of that name, and mean it. */
  readonly createNamespace?: string | undefined;
}

/**
 * Opens a stack and settles which namespace is meant where a resource names none: for all of this process, so that a
 * plan, its review and its run mean the same one. Whoever asked closes the connection.
 * @throws what opening the stack throws; RequestError where the service or the credential fails; ConfigurationError
 * where a setting is wrong, or the stack's own resources are in several namespaces
 */
export async function openOnService(options: StackOptions, settling: Settling = {}): Promise<OnService> {
  const stack = await openStack(options);
  const { newConnection, settings } = await import("../pulumi/session.ts");
  const configuration = isComplete(process.env) ? new Map<string, string>() : await configurationOf(stack);
  const lookup = (key: string) => configuration.get(key);
  if (!isSet(settings(lookup, process.env), "GATEHOUSE_URL")) return { stack, service: undefined };
  const connection = newConnection(lookup);
  try {
    const { tenant, unsettled, source } = await settled(stack, connection, settling);
    if (tenant === undefined) {
      return {
        stack,
        service: { connection, tenant, unsettled, text: `${connection.client.url}; no namespace is set` },
      };
    }
    const text = await textOf(connection, tenant, source.words);
    if (source.isSet) return { stack, service: { connection, tenant, unsettled, text } };
    if (settling.pin) await stack.setConfig(TENANT_KEY, tenant);
    process.env.GATEHOUSE_TENANT = tenant;
    // Opened again, since it has the environment of its opening.
    const reopened = settling.pin ? stack : await openStack(options);
    const pinned = settling.pin
      ? `${text}; from now on ${TENANT_KEY} in the stack's configuration says so`
      : text;
    return { stack: reopened, service: { connection, tenant, unsettled, text: pinned } };
  } catch (error) {
    await connection.client.close();
    throw error;
  }
}

const isSet = (env: NodeJS.ProcessEnv, name: string) => Boolean(env[name] ?? env[`${name}_FILE`]);

/** True where the stack's configuration has nothing to add. */
const isComplete = (env: NodeJS.ProcessEnv) =>
  ["GATEHOUSE_URL", "GATEHOUSE_TENANT"].every((name) => isSet(env, name)) &&
  ["GATEHOUSE_API_KEY", "GATEHOUSE_TOKEN", "GATEHOUSE_PASSWORD"].some((name) => isSet(env, name));

/** That of the stack; none where it is still to be made. */
async function configurationOf(stack: Stack): Promise<ReadonlyMap<string, string>> {
  try {
    return await stack.config();
  } catch (error) {
    if (error instanceof StackSelectionError) return new Map();
    throw error;
  }
}

interface Source {
  readonly words: string;
  /** True for a setting, which holds in later runs as well. */
  readonly isSet: boolean;
}

async function settled(
  stack: Stack,
  connection: Connection,
  { createNamespace }: Settling,
): Promise<{ tenant: string | undefined; unsettled: Error | undefined; source: Source }> {
  const { ConfigurationError } = await import("@gatehouse-access/sdk");
  const set = connection.defaultTenant;
  if (set !== undefined) {
    const words = isSet(process.env, "GATEHOUSE_TENANT")
      ? "by GATEHOUSE_TENANT"
      : "by the stack's configuration";
    return { tenant: set, unsettled: undefined, source: { words, isSet: true } };
  }
  const [kept, ...others] = homesIn(await stack.resources());
  if (others.length > 0) {
    throw new ConfigurationError(
      `tenant: resources of the stack that name no namespace are in ${others.length + 1} of them: ${[kept, ...others].sort().join(", ")}; name it in those of all but one, and set ${TENANT_KEY} to that one`,
    );
  }
  if (kept !== undefined) {
    return {
      tenant: kept,
      unsettled: undefined,
      source: { words: "where the stack's resources are", isSet: false },
    };
  }
  const source = { words: "the only one of the credential", isSet: false };
  try {
    const tenant = await (createNamespace === undefined
      ? connection.home()
      : namespaceOf(connection, createNamespace));
    return { tenant, unsettled: undefined, source };
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    return { tenant: undefined, unsettled: error, source };
  }
}

/** Where the objects are of resources that name no namespace. */
function homesIn(resources: Awaited<ReturnType<Stack["resources"]>>): string[] {
  const tenants = resources
    .filter(
      ({ type, inputs = {} }) => type.startsWith(OWN_TYPE) && !type.endsWith(":Namespace") && !inputs.tenant,
    )
    .map(({ outputs = {} }) => outputs.tenant)
    .filter((tenant) => typeof tenant === "string");
  return [...new Set(tenants)];
}

async function namespaceOf({ client, namespaces }: Connection, name: string): Promise<string> {
  const all = await namespaces.all();
  const known = all.find((namespace) => namespace.name === name.toLowerCase());
  return known?.tenantId ?? (await client.createNamespace({ body: { name } })).tenantId;
}

async function textOf(connection: Connection, tenant: string, words: string): Promise<string> {
  const { NotFoundError, PermissionError } = await import("@gatehouse-access/sdk");
  const { printable } = await import("../review/accessText.ts");
  const { url } = connection.client;
  try {
    const found = await connection.namespaces.find(tenant);
    return `${found ? `${printable(found.name)} (${tenant})` : `${tenant}, which is not there,`} on ${url}, ${words}`;
  } catch (error) {
    // What it means for the run, the run tells.
    if (!(error instanceof NotFoundError || error instanceof PermissionError)) throw error;
    return `${tenant} on ${url}, ${words}`;
  }
}
