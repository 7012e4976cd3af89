import { isDeepStrictEqual } from "node:util";
import type grpc from "@grpc/grpc-js";
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import { UNKNOWN } from "../../../provider/engineMarks.ts";
import { type Notice, noticeText } from "../../../provider/lifecycle/lifecycle.ts";
import { pulumiRun } from "../../../provider/lifecycle/runRecord.ts";
import { dynamicProvider } from "../../../provider/providers/dynamic/dynamicProvider.ts";
import { serveProvider } from "../../../provider/providers/plugin/grpcServer.ts";
import { PulumiProvider } from "../../../provider/providers/plugin/pulumiProvider.ts";
import { definitions } from "../../../provider/resources/index.ts";
import { Connection } from "../../../provider/service/connection.ts";
import { opens } from "../../../provider/service/newConnection.ts";
import { createClient, credentialsFromEnvironment } from "../../../sdk/index.ts";
import { failureOf, type Message, PluginClient } from "../../support/pluginClient.ts";
import { type FrontEnd, type FrontEndOptions, type ResourceName, StateChangedError } from "./frontEnd.ts";
import { terraformFrontEnd } from "./terraformFrontEnd.ts";

type Values = Record<string, unknown>;

/** True if the tests use the Terraform provider: see vitest.config.ts. */
export const isTerraform = process.env.TEST_FRONT_END === "terraform";

/** Functions that open each front end, by name, for tests that use several front ends. */
export const frontEnds = { dynamic: dynamicFrontEnd, plugin: pluginFrontEnd };

/** Opens the front end that TEST_FRONT_END selects: dynamic providers (default), the plugin or Terraform. */
export function openFrontEnd(options: FrontEndOptions): Promise<FrontEnd> {
  if (isTerraform) return terraformFrontEnd(options);
  return process.env.TEST_FRONT_END === "plugin" ? pluginFrontEnd(options) : dynamicFrontEnd(options);
}

/** Calls the methods of the dynamic providers, without processes. */
async function dynamicFrontEnd({ env, stack, stateId, replace }: FrontEndOptions): Promise<FrontEnd> {
  const { GATEHOUSE_URL = "" } = env;
  const { credential } = credentialsFromEnvironment(env);
  const budget = 1000 * Number(env.GATEHOUSE_RETRY_TIMEOUT ?? "60");
  const client = createClient({ url: GATEHOUSE_URL, ...(credential && { credential }), retry: { budget } });
  const defaultTenant = env.GATEHOUSE_TENANT;
  const connection = new Connection(client, {
    defaultTenant,
    requiresEnforcedExpiry: env.GATEHOUSE_REQUIRE_ENFORCED_EXPIRY === "true",
    opens: (secret) => opens({ url: GATEHOUSE_URL }, secret),
  });
  const runtime = {
    ...pulumiRun({ GATEHOUSE_REPLACE: JSON.stringify(replace.map((name) => `**::${name}`)) }),
    configure: () => {},
    connection: () => connection,
    tell: (notice: Notice) => console.log(noticeText(notice)),
    defaultTenant: () => defaultTenant,
  };
  const providers = Object.fromEntries(
    definitions.map((definition) => [definition.name, dynamicProvider(definition, runtime)]),
  );
  const of = ({ type }: ResourceName) => {
    const { check, diff, create, update, read, delete: remove } = providers[type] ?? {};
    if (!check || !diff || !create || !update || !read || !remove) throw new Error(`no provider ${type}`);
    return { check, diff, create, update, read, remove };
  };
  const urnOf = ({ type, name }: ResourceName) =>
    `urn:pulumi:${stack}::project::pulumi-nodejs:dynamic/gatehouse:${type}::${name}`;
  return {
    async check(resource, olds, news) {
      const given = { ...news, __provider: "x", __logicalId: urnOf(resource), __stateId: stateId };
      const { inputs, failures = [] } = await of(resource).check(olds, given);
      return { inputs, failures: failures.map(({ reason }) => reason) };
    },
    async diff(resource, id, outputs, inputs) {
      const compared = await of(resource).diff(id, outputs, inputs);
      const { changes, replaces = [], deleteBeforeReplace } = compared;
      return changes ? { replaces, deletesFirst: deleteBeforeReplace === true } : undefined;
    },
    async create(resource, inputs) {
      try {
        const { id, outs } = await of(resource).create(inputs);
        return { id, outputs: plain(outs) };
      } catch (error) {
        const { id, properties } = error as { id?: string; properties?: object };
        if (id === undefined || properties === undefined) throw error;
        throw new StateChangedError(String(error), { id, outputs: plain(properties) });
      }
    },
    async update(resource, id, outputs, inputs) {
      return plain((await of(resource).update(id, outputs, inputs)).outs);
    },
    async read(resource, id, outputs) {
      const live = await of(resource).read(id, outputs);
      if (!live.id) return undefined;
      return { id: live.id, outputs: plain(live.props), ...(live.inputs && { inputs: plain(live.inputs) }) };
    },
    async delete(resource, id, outputs) {
      await of(resource).remove(id, outputs);
    },
    close: () => client.close(),
  };
}

/**
 * Calls the plugin through its protocol. Previews each step before it runs, and checks that the result matches the
 * preview.
 */
async function pluginFrontEnd({ env, stack, stateId, replace }: FrontEndOptions): Promise<FrontEnd> {
  const urnOf = ({ type, name }: ResourceName) =>
    `urn:pulumi:${stack}::project::gatehouse:index:${type}::${name}`;
  const replaceUrns = definitions.flatMap(({ name: type }) => replace.map((name) => urnOf({ type, name })));
  const service = new PulumiProvider(
    { log: (message) => console.log(message) },
    { ...env, ...(replaceUrns.length > 0 && { GATEHOUSE_REPLACE: JSON.stringify(replaceUrns) }) },
  );
  const server = await serveProvider(service);
  const client = new PluginClient(server.port);
  const call = (method: string, request: object) =>
    client.call(method, request).catch((error: grpc.ServiceError) => {
      const message = error.details || error.message;
      const { initFailed } = failureOf(error).error;
      if (!initFailed) throw new Error(message);
      const { id, properties, reasonsList } = initFailed;
      throw new StateChangedError([message, ...reasonsList].join(": "), { id, outputs: plain(properties) });
    });
  const instance = `urn:pulumi:${stack}::project::pulumi:providers:gatehouse::default_0_1_0`;
  await call("configure", { id: stateId, urn: instance, args: {} });

  const create = (resource: ResourceName, properties: Values, preview: boolean) =>
    call("create", { urn: urnOf(resource), properties, preview });
  const update = (resource: ResourceName, id: string, olds: Values, news: Values, preview: boolean) =>
    call("update", { urn: urnOf(resource), id, olds, news, preview });
  return {
    async check(resource, olds, news) {
      const { inputs, failuresList = [] } = await call("check", { urn: urnOf(resource), olds, news });
      return { inputs: plain(inputs), failures: failuresList.map(({ reason }: Message) => reason) };
    },
    async diff(resource, id, outputs, inputs) {
      const response = await call("diff", { urn: urnOf(resource), id, olds: outputs, news: inputs });
      checkDetails(response);
      const { DIFF_SOME } = proto.DiffResponse.DiffChanges;
      const { replacesList: replaces = [], deletebeforereplace: deletesFirst } = response;
      return response.changes === DIFF_SOME ? { replaces, deletesFirst } : undefined;
    },
    async create(resource, inputs) {
      const planned = plain((await create(resource, inputs, true)).properties);
      const { id, properties } = await create(resource, inputs, false);
      const outputs = plain(properties);
      checkPlanned(resource, planned, outputs);
      return { id, outputs };
    },
    async update(resource, id, outputs, inputs) {
      const planned = plain((await update(resource, id, outputs, inputs, true)).properties);
      const after = plain((await update(resource, id, outputs, inputs, false)).properties);
      checkPlanned(resource, planned, after);
      return after;
    },
    async read(resource, id, outputs) {
      const response = await call("read", { urn: urnOf(resource), id, properties: outputs });
      return response.id === undefined ? undefined : { id: response.id, outputs: plain(response.properties) };
    },
    async delete(resource, id, outputs) {
      await call("delete", { urn: urnOf(resource), id, properties: outputs });
    },
    async close() {
      client.close();
      server.close();
    },
  };
}

/** Checks that the detailed diff marks exactly the inputs that require a replacement. */
function checkDetails({ detaileddiffMap = {}, replacesList = [], diffsList = [] }: Message): void {
  const { ADD_REPLACE, DELETE_REPLACE, UPDATE_REPLACE } = proto.PropertyDiff.Kind;
  const marks: readonly number[] = [ADD_REPLACE, DELETE_REPLACE, UPDATE_REPLACE];
  const details = Object.entries<Message>(detaileddiffMap);
  const topOf = ([path]: readonly [string, unknown]) => path.split(/[.[]/)[0] ?? "";
  const changed = new Set(details.map(topOf));
  const replacing = new Set(details.filter(([, { kind }]) => marks.includes(kind)).map(topOf));
  const replaces = replacesList.filter((name: string) => name !== "id");
  const isWhole =
    isDeepStrictEqual(changed, new Set(diffsList)) && isDeepStrictEqual(replacing, new Set(replaces));
  if (!isWhole) throw new Error(`the detailed diff has ${[...changed]}, the diff ${diffsList}`);
}

function checkPlanned({ type, name }: ResourceName, planned: Values, after: Values): void {
  for (const [field, value] of Object.entries(planned)) {
    if (value === UNKNOWN || isDeepStrictEqual(value, after[field])) continue;
    throw new Error(
      `${type} ${name}: the preview promises ${field} ${JSON.stringify(value)}, it is ${JSON.stringify(after[field])}`,
    );
  }
}

const SECRET = "4dabf18193072939515e22adb298388d";

function plain(values: unknown): Values {
  return unwrap(values) as Values;
}

function unwrap(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(unwrap);
  if (typeof value !== "object" || value === null) return value;
  if (SECRET in value) return (value as { value?: unknown }).value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, unwrap(member)]));
}
