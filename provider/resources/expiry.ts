import { publicKeys } from "@gatehouse-access/sdk/contract";
import { canonicalTime, isTime } from "@gatehouse-access/sdk/times";
import { z } from "zod";
import { ResourceError, said } from "../resourceError.ts";
import type { Connection } from "../service/connection.ts";
import { hasCapability, lackNotice } from "../service/server.ts";
import {
  defineResource,
  type Existing,
  type InputField,
  type Inputs,
  type Need,
  type Outputs,
  optional,
  output,
  type ResourceDefinition,
  type State,
} from "./definition.ts";
import { hasEnded, stateTime } from "./validity.ts";
import { sameValue } from "./values.ts";

const wireEnd = publicKeys.createPublicKey.body.shape.expires_at.unwrap().unwrap();

const endSchema = z
  .string()
  .refine(
    (text) => wireEnd.safeParse(text).success,
    "must be a time with an offset, for example 2026-12-01T18:00:00Z or 2026-12-01T20:00:00+02:00",
  );

/** The possible values of the output `expiryStatus`. */
const EXPIRY_STATUSES = ["none", "enforced", "by-run", "removed"] as const;

type End = { readonly expiresAt: string; readonly expiryStatus: (typeof EXPIRY_STATUSES)[number] };

/** The values that servers of others do not have. Only the state contains them there. */
interface Local extends Partial<End> {
  readonly tenant?: string | undefined;
  readonly owner?: string | undefined;
  readonly ownerId?: string | undefined;
}

/** Returns the input of objects whose access can end. The description contains the object and the effect of the end. */
export const expiryInputs = (subject: string, effect: string) => ({
  expiresAt: optional(endSchema, {
    description: `The time from which ${effect}, in RFC 3339 format with an offset. Omit the input if ${subject} does not expire. Must be in the future when ${subject} is created. An expired object stays in the state until you delete its declaration.`,
    default: "",
    // Plans contain marks instead of times that are secret or unknown.
    canonical: (time) => (isTime(time) ? canonicalTime(time) : time),
  }),
});

/** The output of objects whose access can end. */
export const expiryOutputs = {
  expiryStatus: output(z.enum(EXPIRY_STATUSES), {
    description:
      "The way in which the access ends. `none`: the access does not end. `enforced`: the service ends the access. `by-run`: the server does not know the end, so the first run after the end, or `gatehouse expire`, removes the object. `removed`: a run has removed the expired object.",
    mutable: ({ expiresAt, expiryStatus }, inputs) =>
      expiryStatus === "by-run" || (expiresAt ?? "") !== (inputs.expiresAt ?? ""),
  }),
};

/** Returns the end of an object's access for its state. @param end the end in the response, if it has one */
export const endState = (end: string | undefined): End =>
  end === undefined
    ? { expiresAt: "", expiryStatus: "none" }
    : { expiresAt: stateTime(end), expiryStatus: "enforced" };

/** Returns the end for a create, or for an update of a state. Null removes the end, undefined keeps it. */
export function endToSend({ expiresAt = "" }: Local, state: Local = {}): string | null | undefined {
  const isKept = expiresAt === (state.expiresAt ?? "") && (!expiresAt || state.expiryStatus === "enforced");
  return isKept ? undefined : expiresAt || null;
}

/**
 * Defines a resource whose access can end. On servers of others, only the state contains the end and the owner, and the
 * first run after the end removes the object. An expired object stays in the state, so that no run creates it again.
 */
export function defineExpiring<
  I extends Inputs & ReturnType<typeof expiryInputs>,
  O extends Outputs & typeof expiryOutputs,
>(definition: ResourceDefinition<I, O>): ResourceDefinition<I, O> {
  const { needs, stale, find, create, read, update } = definition;
  const isOver = ({ expiresAt = "" }: Local, now = new Date()) => hasEnded(expiresAt, now);
  const remove: typeof definition.delete = async (connection, id, state, isClaimed) => {
    if (await read(connection, id, state)) await definition.delete(connection, id, state, isClaimed);
  };
  return defineResource({
    ...definition,

    needs: (inputs, state) => [
      ...(needs?.(inputs, state) ?? []),
      ...LOCAL.filter(([, name]) => (inputs as Local)[name]).map(([capability, name]): Need => {
        const [value, before] = [inputs, state ?? {}].map((values) => (values as Local)[name]);
        const isUnchanged = sameValue(definition.inputs[name] as InputField, value, before);
        return { capability, field: [name], isUnchanged };
      }),
    ],

    lacked({ expiryStatus, owner, ownerId }: Local) {
      const lacks = { "access expiry": expiryStatus === "by-run", "key owners": owner && !ownerId };
      return LOCAL.flatMap(([capability]) => (lacks[capability] && lackNotice(capability)) || []);
    },

    expiredAt: (inputs, now) => (isOver(inputs as Local, now) ? (inputs as Local).expiresAt : undefined),

    stale(state, inputs, now) {
      const { expiryStatus } = state as Local;
      const isEnded = isOver(inputs as Local, now);
      if (expiryStatus === "removed") return isEnded ? [] : [{ field: "expiresAt", replaces: true }];
      if (!isEnded) return stale?.(state, inputs, now) ?? [];
      return expiryStatus === "by-run" ? [{ field: "expiresAt", replaces: false }] : [];
    },

    ...(find && {
      async find(connection, inputs, isOthers) {
        const sentInputs = await sent(connection, inputs);
        const found = await find(connection, sentInputs, isOthers);
        return found && (sentInputs === inputs ? found : withLocalState(found, inputs));
      },
    }),

    // The service may return an object that existed before. If the server supports the inputs, an update then adds them.
    async create(connection, inputs, origin) {
      const sentInputs = await sent(connection, inputs);
      const created = await create(connection, sentInputs, origin);
      return sentInputs === inputs ? created : withLocalState(created, inputs);
    },

    async read(connection, id, state) {
      const found = await read(connection, id, state);
      if (found) return withLocalState(found, state);
      if (!isOver(state as Local)) return undefined;
      return { id, state: { ...(state as State<I, O>), expiryStatus: "removed" } };
    },

    async update(connection, id, state, inputs) {
      const { adopt: _instruction, ...declared } = inputs as Local & { readonly adopt?: unknown };
      const { expiryStatus } = state as Local;
      const used = { ...(state as Local), ...declared };
      const sentInputs = await sent(connection, inputs, state);
      const isLocal = sentInputs !== inputs;
      const end = isLocal ? undefined : endToSend(inputs, state as Local);
      const isDue = isOver(used) && (isLocal || expiryStatus === "by-run");
      if (isDue && expiryStatus !== "removed") await remove(connection, id, state, () => false);
      if (isDue || expiryStatus === "removed") return { ...state, ...declared, expiryStatus: "removed" };
      const after = await update(connection, id, isLocal ? withoutLocal(state) : state, sentInputs);
      if (!end || (after as Local).expiresAt === end) return withLocal(after, used);
      // The response shows that the server did not store the end, although it seemed to support ends.
      if (connection.requiresEnforcedExpiry) throw notStored(definition.name, end);
      return { ...after, expiresAt: end, expiryStatus: "by-run" };
    },

    async delete(connection, id, state, isClaimed) {
      if ((state as Local).expiryStatus === "removed") return;
      await (isOver(state as Local) ? remove : definition.delete)(connection, id, state, isClaimed);
    },
  });
}

/** The inputs that servers of others do not have, by the capability that they need. */
const LOCAL = [
  ["access expiry", "expiresAt"],
  ["key owners", "owner"],
] as const;

const withoutLocal = <V extends object>(values: V): V => {
  const none: Local = { expiresAt: "", expiryStatus: "none", owner: "", ownerId: "" };
  return { ...values, ...Object.fromEntries(Object.entries(none).filter(([name]) => name in values)) };
};

/**
 * Returns the inputs that the server supports. Sends requests only if a value is set that some servers lack.
 * @param state the state before an update, which may have to remove values
 */
async function sent<V extends Local>(connection: Connection, inputs: V, state: Local = {}): Promise<V> {
  if (![inputs, state].some(({ expiresAt, owner }) => expiresAt || owner)) return inputs;
  const isSupported = hasCapability(await connection.server(inputs.tenant || state.tenant), "access expiry");
  return isSupported ? inputs : withoutLocal(inputs);
}

const notStored = (resource: string, end: string): ResourceError =>
  new ResourceError(resource, {
    code: "unsupported_by_server",
    field: ["expiresAt"],
    value: end,
    detail: said`the service did not store the end, so it does not end the access`,
    remedy: said`check the proxies between this machine and the service, remove the end, or do not require enforced expiry`,
  });

const withLocalState = <S extends object>(found: Existing<S>, known: Local): Existing<S> => ({
  ...found,
  state: withLocal(found.state, known),
});

/** Returns the state of an object on the service, with the values that only the state before or the program contains. */
function withLocal<S extends object>(state: S, known: Local): S {
  const { expiresAt, owner } = state as Local;
  const { expiryStatus = "by-run" } = known;
  // If the service has ended the access, or a run has removed the object, an object without an end is a change.
  const keepsEnd = !expiresAt && known.expiresAt && !["enforced", "removed"].includes(expiryStatus);
  const keepsOwner = owner === "" && known.owner && !known.ownerId;
  return {
    ...state,
    ...(keepsEnd && { expiresAt: known.expiresAt, expiryStatus: "by-run" }),
    ...(keepsOwner && { owner: known.owner }),
  };
}
