import { inspect } from "node:util";
import { z } from "zod";
import { counted, firstOf } from "../words.ts";
import { answerOf, type Judge, type Judgement } from "./judgement.ts";

/** What can be said of lists and other values. */
export const listMatchers = {
  exactlyOneOwner,
  everyKeyExpires,
  toSatisfy,
  toAllSatisfy,
} satisfies Record<string, Judge>;

const DAY_MS = 86_400_000;
/** Most elements that a message names. */
const NAMED_MAX = 5;

const memberList = z.array(z.object({ email: z.string(), role: z.string() }));
const apiKeyList = z.array(z.object({ name: z.string(), expiresIn: z.number(), createdAt: z.string() }));
const lifeLimit = z.strictObject({ withinDays: z.number().positive() });

function exactlyOneOwner(subject: unknown, args: readonly unknown[]): Judgement {
  if (args.length > 0) throw new TypeError("exactlyOneOwner(): takes nothing");
  const members = read(memberList, subject, "exactlyOneOwner(): is for members, as a policy test gets them");
  const owners = members.filter(({ role }) => role === "owner").map(({ email }) => email);
  const message =
    owners.length === 0 ? "there is no owner" : `${counted(owners.length, "owner")}: ${named(owners)}`;
  return { holds: owners.length === 1, message };
}

function everyKeyExpires(subject: unknown, [limit, ...more]: readonly unknown[]): Judgement {
  if (more.length > 0) throw new TypeError("everyKeyExpires(): takes one limit");
  const keys = read(apiKeyList, subject, "everyKeyExpires(): is for apiKeys, as a policy test gets them");
  const days =
    limit === undefined
      ? undefined
      : read(lifeLimit, limit, "everyKeyExpires(): takes { withinDays: a positive number }").withinDays;
  const forEver = keys.filter(({ expiresIn }) => expiresIn <= 0).map(({ name }) => name);
  const tooLong = keys
    .filter(({ expiresIn, createdAt }) => {
      const lifeMs = expiresIn * 1000 - Date.parse(createdAt);
      return expiresIn > 0 && days !== undefined && !(lifeMs <= days * DAY_MS);
    })
    .map(({ name }) => name);
  const faults = [
    ...(forEver.length > 0 ? [`${counted(forEver.length, "API key")} for ever: ${named(forEver)}`] : []),
    ...(tooLong.length > 0
      ? [`${counted(tooLong.length, "API key")} for more than ${days} days: ${named(tooLong)}`]
      : []),
  ];
  const message = faults.length > 0 ? faults.join("; ") : `all API keys expire: ${keys.length}`;
  return { holds: faults.length === 0, message, vacuous: none(keys, "API key") };
}

function toSatisfy(subject: unknown, args: readonly unknown[]): Judgement {
  const { predicate, what } = predicateOf("toSatisfy", args);
  const holds = answerOf("toSatisfy(): the predicate", predicate(subject));
  const text = what === undefined ? "" : `: ${what}`;
  return { holds, message: holds ? `it is so${text}` : `it is not so${text}` };
}

function toAllSatisfy(subject: unknown, args: readonly unknown[]): Judgement {
  const { predicate, what } = predicateOf("toAllSatisfy", args);
  if (!Array.isArray(subject)) throw new TypeError("toAllSatisfy(): is for lists");
  const list: readonly unknown[] = subject;
  const others = list.filter((item) => !answerOf("toAllSatisfy(): the predicate", predicate(item)));
  const text = what === undefined ? "" : ` (${what})`;
  const message =
    others.length === 0
      ? `it is so of all${text}: ${list.length}`
      : `it is not so of ${others.length} of ${list.length}${text}: ${named(others.map(nameOf))}`;
  return { holds: others.length === 0, message, vacuous: none(list, "element") };
}

function predicateOf(matcher: string, [predicate, what, ...more]: readonly unknown[]) {
  if (typeof predicate !== "function" || more.length > 0 || !["string", "undefined"].includes(typeof what)) {
    throw new TypeError(`${matcher}(): takes a function, and what it says as text`);
  }
  return { predicate: predicate as (value: unknown) => unknown, what: what as string | undefined };
}

function read<T>(schema: z.ZodType<T>, value: unknown, otherwise: string): T {
  const result = schema.safeParse(value);
  if (!result.success) throw new TypeError(otherwise);
  return result.data;
}

const none = (list: readonly unknown[], noun: string): string | undefined =>
  list.length === 0 ? `there is no ${noun}` : undefined;

const named = (names: readonly string[]): string => firstOf(names, NAMED_MAX);

/** An element as the one who looks for it calls it. */
function nameOf(item: unknown): string {
  const { name, email, id } = (typeof item === "object" ? (item ?? {}) : {}) as Record<string, unknown>;
  const own = [name, email, id].find((candidate) => typeof candidate === "string" && candidate !== "");
  return own === undefined ? inspect(item, { depth: 1, breakLength: Number.POSITIVE_INFINITY }) : String(own);
}
