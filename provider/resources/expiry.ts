import { publicKeys } from "@gatehouse-access/sdk/contract";
import { z } from "zod";
import { said } from "../resourceError.ts";
import type { Connection } from "../service/connection.ts";
import { isMissingObject } from "../service/listings.ts";
import { hasCapability } from "../service/server.ts";
import {
  type Existing,
  type InputField,
  type Inputs,
  type IsClaimed,
  type Need,
  type Outputs,
  optional,
  output,
  type ResourceDefinition,
  type State,
} from "./definition.ts";
import { hasPassed, timeText } from "./validity.ts";
import { sameValue } from "./values.ts";

const wireEnd = publicKeys.createPublicKey.body.shape.expires_at.unwrap().unwrap();

const endSchema = z
  .string()
  .refine(
    (text) => wireEnd.safeParse(text).success,
    "must be a time with an offset, for example 2026-12-01T18:00:00Z or 2026-12-01T20:00:00+02:00",
  );

/** The possible values of the output `expiryStatus`. */
export const EXPIRY_STATUSES = ["none", "enforced", "by-run", "removed"] as const;

/** The input and the output of objects whose access can end, in states. */
interface End {
  readonly expiresAt: string;
  readonly expiryStatus: (typeof EXPIRY_STATUSES)[number];
}

/** The values that servers of others do not have. Only the state contains them there. */
interface Local extends Partial<End> {
  readonly tenant?: string | undefined;
  readonly owner?: string | undefined;
  readonly ownerId?: string | undefined;
}

const expiryInputs = (subject: string, effect: string) => ({
  expiresAt: optional(endSchema, {
    description: `The time from which ${effect}, in RFC 3339 format with an offset. Omit the input if ${subject} does not expire. Must be in the future when ${subject} is created. An expired object stays in the state until you delete its declaration.`,
    default: "",
    // Plans contain marks instead of times that are secret or unknown.
    canonical: (time) => (Number.isNaN(Date.parse(time)) ? time : timeText(time)),
  }),
});

const expiryOutputs = {
  expiryStatus: output(z.enum(EXPIRY_STATUSES), {
    description:
      "The way in which the access ends. `none`: the access does not end. `enforced`: the service ends the access. `by-run`: the server does not know the end, so the first run after the end, or `gatehouse expire`, removes the object. `removed`: a run has removed the expired object.",
    mutable: ({ expiresAt, expiryStatus }, inputs) =>
      expiryStatus === "by-run" || (expiresAt ?? "") !== (inputs.expiresAt ?? ""),
  }),
};

/**
 * Returns the inputs and the outputs of objects whose access can end.
 * @param subject the object in the description, such as `the key`
 * @param effect the effect of the end, as a sentence without a period
 */
export const expiryFields = (subject: string, effect: string) =>
  [expiryInputs(subject, effect), expiryOutputs] as const;

/** Returns the end of an object's access for its state. @param end the end in the response, if it has one */
export const endState = (end: string | undefined): End =>
  end === undefined
    ? { expiresAt: "", expiryStatus: "none" }
    : { expiresAt: timeText(end), expiryStatus: "enforced" };

/**
 * Returns the end of the access for a request, in the field with this name. Null removes the end. A request without the
 * field keeps the end.
 * @param state the state before an update
 */
export function endBody<Name extends string>(
  name: Name,
  { expiresAt = "" }: Local,
  state: Local = {},
): { [K in Name]?: string | null } {
  const isKept =
    expiresAt === (state.expiresAt ?? "") && (expiresAt === "" || state.expiryStatus === "enforced");
  return isKept ? {} : ({ [name]: expiresAt || null } as { [K in Name]: string | null });
}

type ExpiryInputs = ReturnType<typeof expiryInputs>;

/**
 * Completes the definition of a resource whose access can end. On servers of others, only the state contains the end and
 * the owner. There, the first run after the end removes the object. An expired object that no longer exists stays in the
 * state, so that no run creates the object again.
 */
export function expiring<I extends Inputs & ExpiryInputs, O extends Outputs & typeof expiryOutputs>(
  definition: ResourceDefinition<I, O>,
): ResourceDefinition<I, O> {
  type Known = State<I, O>;
  const { needs, stale, find, create, read, update } = definition;

  const remove = async (
    connection: Connection,
    id: string,
    state: Readonly<Known>,
    isClaimed: IsClaimed = () => false,
  ) => {
    try {
      await definition.delete(connection, id, state, isClaimed);
    } catch (error) {
      if (!isMissingObject(error)) throw error;
      await connection.forget();
      if ((await read(connection, id, state))?.id === id) throw error;
    }
  };

  return {
    ...definition,

    needs: (inputs, state) => [
      ...(needs?.(inputs, state) ?? []),
      ...needsOfLocal(definition.inputs, inputs, state),
    ],

    lacked({ expiryStatus, owner, ownerId }: Local) {
      const lacks = { "access expiry": expiryStatus === "by-run", "key owners": owner && !ownerId };
      return LOCAL.filter(([capability]) => lacks[capability]).map(([capability]) => capability);
    },

    rulesOfNew(inputs, now) {
      const { expiresAt = "" } = inputs as Local;
      if (!hasPassed(expiresAt, now)) return [];
      const detail = said`must be in the future, because the object does not exist yet`;
      const remedy = said`set a later time, or delete the declaration`;
      return [{ code: "invalid_input", field: ["expiresAt"], value: expiresAt, detail, remedy }];
    },

    expiredAt(inputs, now) {
      const { expiresAt = "" } = inputs as Local;
      return hasPassed(expiresAt, now) ? expiresAt : undefined;
    },

    stale(state, inputs, now) {
      const { expiryStatus } = state as Local;
      const isOver = hasPassed((inputs as Local).expiresAt ?? "", now);
      if (expiryStatus === "removed") return isOver ? [] : [{ field: "expiresAt", replaces: true }];
      if (expiryStatus === "by-run" && isOver) return [{ field: "expiresAt", replaces: false }];
      return isOver ? [] : (stale?.(state, inputs, now) ?? []);
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
      if (!hasPassed((state as Local).expiresAt ?? "", new Date())) return undefined;
      return { id, state: { ...(state as Known), expiryStatus: "removed" } };
    },

    async update(connection, id, state, inputs) {
      const wanted = inputs as Local;
      const kept = Object.fromEntries(
        Object.keys(definition.inputs).flatMap((name) => {
          const value = (inputs as Readonly<Record<string, unknown>>)[name];
          return value === undefined ? [] : [[name, value]];
        }),
      );
      const removed = { ...state, ...kept, expiryStatus: "removed" } as Known;
      if ((state as Local).expiryStatus === "removed") return removed;
      const used = { ...(state as Local), ...wanted };
      const sentInputs = await sent(connection, inputs, state);
      const isLocal = sentInputs !== inputs;
      if (
        hasPassed(used.expiresAt ?? "", new Date()) &&
        (isLocal || (state as Local).expiryStatus === "by-run")
      ) {
        await remove(connection, id, state);
        return removed;
      }
      const before = isLocal ? withoutLocal(state) : state;
      return withLocal(await update(connection, id, before, sentInputs), used);
    },

    async delete(connection, id, state, isClaimed) {
      const { expiresAt = "", expiryStatus } = state as Local;
      if (expiryStatus === "removed") return;
      if (hasPassed(expiresAt, new Date())) await remove(connection, id, state, isClaimed);
      else await definition.delete(connection, id, state, isClaimed);
    },
  };
}

/** The inputs that servers of others do not have, by the capability that they need. */
const LOCAL = [
  ["access expiry", "expiresAt"],
  ["key owners", "owner"],
] as const;

const needsOfLocal = (fields: Inputs, inputs: Local, state: Local | undefined): readonly Need[] =>
  LOCAL.filter(([, name]) => inputs[name]).map(([capability, name]) => {
    const isUnchanged = sameValue(fields[name] as InputField, inputs[name], state?.[name]);
    return { capability, field: [name], isUnchanged };
  });

const NO_LOCAL: Local = { expiresAt: "", expiryStatus: "none", owner: "", ownerId: "" };

const withoutLocal = <V extends object>(values: V): V => ({
  ...values,
  ...Object.fromEntries(Object.entries(NO_LOCAL).filter(([name]) => name in values)),
});

/**
 * Returns the inputs that the server supports. Sends requests only if a value is set that some servers lack.
 * @param state the state before an update, which may have to remove values
 */
async function sent<V extends Local>(connection: Connection, inputs: V, state: Local = {}): Promise<V> {
  if (![inputs, state].some(({ expiresAt, owner }) => expiresAt || owner)) return inputs;
  const isSupported = hasCapability(await connection.server(inputs.tenant || state.tenant), "access expiry");
  return isSupported ? inputs : withoutLocal(inputs);
}

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
