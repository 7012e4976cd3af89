import { publicKeys } from "@gatehouse-access/sdk/contract";
import { canonicalTime, isTime } from "@gatehouse-access/sdk/times";
import { z } from "zod";
import { ResourceError, said } from "../resourceError.ts";
import { hasCapability, lackNotice } from "../service/capabilities.ts";
import type { Connection } from "../service/connection.ts";
import type { Values } from "../values.ts";
import type { Existing, Need, ResourceDefinition } from "./definition.ts";
import { type InputField, optional, output } from "./fields.ts";
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

/**
 * The inputs and outputs of this module. If the server does not support them, only the state contains their values.
 */
interface Local extends Partial<End> {
  readonly tenant?: string | undefined;
  readonly owner?: string | undefined;
  readonly ownerId?: string | undefined;
}

/**
 * Returns the input `expiresAt` for objects whose access can expire. The description of the input contains `subject`,
 * the object, and `effect`, the consequence of the expiry.
 */
export const expiryInputs = (subject: string, effect: string) => ({
  expiresAt: optional(endSchema, {
    description: `The time from which ${effect}, in RFC 3339 format with an offset. Omit the input if ${subject} does not expire. Must be in the future when ${subject} is created. An expired object stays in the state until you delete its declaration.`,
    default: "",
    isEnd: true,
    // A secret or unknown time is a placeholder string in plans, so it is not a time.
    canonical: (time) => (isTime(time) ? canonicalTime(time) : time),
  }),
});

/** The output `expiryStatus` of objects whose access can expire. */
export const expiryOutputs = {
  expiryStatus: output(z.enum(EXPIRY_STATUSES), {
    description:
      "The way in which the access ends. `none`: the access does not end. `enforced`: the service ends the access. `by-run`: the server does not know the end, so the first run after the end, or `gatehouse expire`, removes the object. `removed`: a run has removed the expired object.",
    lacked: ({ expiryStatus }) => (expiryStatus === "by-run" ? lackNotice("access expiry") : undefined),
    mutable: ({ expiresAt, expiryStatus }, inputs) =>
      expiryStatus === "by-run" || (expiresAt ?? "") !== (inputs.expiresAt ?? ""),
  }),
};

/**
 * Returns the expiry time of an object's access and its status, as the object's state contains them.
 * @param end the expiry time in the response; undefined if the access does not expire
 */
export const endState = (end: string | undefined): End =>
  end === undefined
    ? { expiresAt: "", expiryStatus: "none" }
    : { expiresAt: stateTime(end), expiryStatus: "enforced" };

/**
 * Returns the expiry time to send in a request: in a create, or in an update of an object with this state. Null removes
 * the expiry time on the service. Undefined keeps it.
 */
export function endToSend({ expiresAt = "" }: Local, state: Local = {}): string | null | undefined {
  const isKept = expiresAt === (state.expiresAt ?? "") && (!expiresAt || state.expiryStatus === "enforced");
  return isKept ? undefined : expiresAt || null;
}

/**
 * Adds the expiry of access to a resource. If a server does not support expiry, only the state contains the expiry time
 * and the owner. The first run after the expiry time then removes the object. An expired object stays in the state, so
 * that no run creates it again.
 */
export function expiring(definition: ResourceDefinition): ResourceDefinition {
  const { needs, stale, find, create, read, update } = definition;
  const isOver = ({ expiresAt = "" }: Local, now = new Date()) => hasEnded(expiresAt, now);
  const remove: typeof definition.delete = async (connection, id, state, isClaimed) => {
    if (await read(connection, id, state)) await definition.delete(connection, id, state, isClaimed);
  };
  /**
   * Calls a function with the inputs that the server supports. Adds the other inputs to the state that the function
   * returns.
   */
  async function supported<E extends Existing<Values> | undefined>(
    connection: Connection,
    inputs: Values,
    call: (supported: Values) => Promise<E>,
  ): Promise<E> {
    const sentInputs = await sent(connection, inputs);
    const found = await call(sentInputs);
    return found && sentInputs !== inputs ? { ...found, state: withLocal(found.state, inputs) } : found;
  }
  return {
    ...definition,

    needs: (inputs, state) => [
      ...(needs?.(inputs, state) ?? []),
      ...LOCAL.filter(([, name]) => inputs[name]).map(([capability, name]): Need => {
        const isUnchanged = sameValue(definition.inputs[name] as InputField, inputs[name], state?.[name]);
        return { capability, field: [name], isUnchanged };
      }),
    ],

    stale(state, inputs, now) {
      const { expiryStatus }: Local = state;
      const isEnded = isOver(inputs, now);
      if (expiryStatus === "removed") return isEnded ? [] : [{ field: "expiresAt", replaces: true }];
      if (!isEnded) return stale?.(state, inputs, now) ?? [];
      return expiryStatus === "by-run" ? [{ field: "expiresAt", replaces: false }] : [];
    },

    ...(find && {
      find: (connection, inputs, isOthers) =>
        supported(connection, inputs, (values) => find(connection, values, isOthers)),
    }),

    // The service may return an object that existed before. If the server supports the inputs, a later update adds them
    // to this object.
    create: (connection, inputs, origin) =>
      supported(connection, inputs, (values) => create(connection, values, origin)),

    async read(connection, id, state) {
      const found = await read(connection, id, state);
      if (found) return { ...found, state: withLocal(found.state, state) };
      return isOver(state) ? { id, state: { ...state, expiryStatus: "removed" } } : undefined;
    },

    async update(connection, id, state, inputs) {
      const { adopt: _instruction, ...declared } = inputs;
      const { expiryStatus }: Local = state;
      const used = { ...state, ...declared };
      const sentInputs = await sent(connection, inputs, state);
      const isLocal = sentInputs !== inputs;
      const end = isLocal ? undefined : endToSend(inputs, state);
      const isDue = isOver(used) && (isLocal || expiryStatus === "by-run");
      if (isDue && expiryStatus !== "removed") await remove(connection, id, state, () => false);
      if (isDue || expiryStatus === "removed") return { ...used, expiryStatus: "removed" };
      const after = await update(connection, id, isLocal ? withoutLocal(state) : state, sentInputs);
      if (!end || after.expiresAt === end) return withLocal(after, used);
      // The response shows that the server did not store the expiry time, although the server reported that it supports
      // expiry.
      if (connection.requiresEnforcedExpiry) throw notStored(definition.name, end);
      return { ...after, expiresAt: end, expiryStatus: "by-run" };
    },

    async delete(connection, id, state, isClaimed) {
      if (state.expiryStatus === "removed") return;
      await (isOver(state) ? remove : definition.delete)(connection, id, state, isClaimed);
    },
  };
}

/** The inputs that some servers do not support, each with the capability that the input needs. */
const LOCAL = [
  ["access expiry", "expiresAt"],
  ["key owners", "owner"],
] as const;

const withoutLocal = <V extends object>(values: V): V => {
  const none: Local = { expiresAt: "", expiryStatus: "none", owner: "", ownerId: "" };
  return { ...values, ...Object.fromEntries(Object.entries(none).filter(([name]) => name in values)) };
};

/**
 * Returns the inputs that the server supports. Sends requests only if the inputs or the state contain a value that some
 * servers do not support.
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
    detail: said`The service did not store the expiry time, so it does not enforce the expiry`,
    remedy: said`check the proxies between this machine and the service, remove the expiry time, or do not require enforced expiry`,
  });

/**
 * Returns the state of an object on the service, together with the values that only the previous state or the program
 * contains.
 */
function withLocal<S extends object>(state: S, known: Local): S {
  const { expiresAt, owner }: Local = state;
  const { expiryStatus = "by-run" } = known;
  // The service returned no expiry time. This is a change on the service if the service enforced the expiry or a run
  // removed the object. Otherwise, the expiry time in `known` stays valid.
  const keepsEnd = !expiresAt && known.expiresAt && !["enforced", "removed"].includes(expiryStatus);
  const keepsOwner = owner === "" && known.owner && !known.ownerId;
  return {
    ...state,
    ...(keepsEnd && { expiresAt: known.expiresAt, expiryStatus: "by-run" }),
    ...(keepsOwner && { owner: known.owner }),
  };
}
