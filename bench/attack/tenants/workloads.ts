// Attacks by the exchange of workloads' tokens, which needs no credential of the service.
import { hash } from "node:crypto";
import type { BenchRequest } from "../../server/cases.ts";
import { call, MANY_ADDRESSES, type Seeding, type TenantCase } from "./tenantCase.ts";

const AUDIENCE = "https://gatehouse.example.com";
const EXCHANGE = "/api/auth/workload";
/** Number of trusted workloads of a namespace; the maximum. */
const WORKLOADS = 100;
const CLAIMS = 16;
/** The last claim of each workload, which the token does not have, so that all other claims are compared before. */
const LAST = "z";

/** Adds trusted workloads. */
function addWorkloads(
  { insert, now }: Pick<Seeding, "insert" | "now">,
  tenantId: string,
  count: number,
  of: (index: number) => { readonly issuer: string; readonly claims: Readonly<Record<string, string>> },
): Promise<void> {
  return insert("TrustedWorkload", count, (index) => {
    const { issuer, claims } = of(index);
    return {
      id: hash("sha256", `${tenantId} ${index}`).slice(0, 24),
      tenantId,
      name: `workload-${index}`,
      issuer,
      audience: AUDIENCE,
      claims: JSON.stringify(claims),
      role: "observer",
      maxSessionMinutes: 60,
      singleUse: false,
      createdBy: "0".repeat(24),
      createdAt: now,
      updatedAt: now,
    };
  });
}

/** Returns a required value with eight wildcards that matches a long text of `a`. Values with other numbers differ. */
function eightWildcards(index: number): string {
  const lengths = [
    1 + (index % 30),
    1 + (Math.floor(index / 30) % 30),
    1 + Math.floor(index / 900),
    30,
    30,
    30,
    30,
  ];
  return `**${lengths.map((length) => "a".repeat(length)).join("**")}**`;
}

const NUMBERS = 360;
const LISTS = 4;
/** The last number of each list, whose digits only its own required values match. */
const LAST_NUMBER = "987654";

/** Returns a required value that matches only the last number of the lists. Values with other numbers differ. */
function digits(index: number): string {
  const dropped = Math.floor(index / 64) % 6;
  const wildcard = (place: number) => ((index >> place) & 1 ? "**" : "*");
  return [...LAST_NUMBER].map((digit, place) => wildcard(place) + (place === dropped ? "" : digit)).join("");
}

/** A case whose attack exchanges one token again and again. */
interface Exchanged {
  readonly title: string;
  /** Claims of the token. */
  readonly token: Readonly<Record<string, unknown>>;
  /** Returns the required claims of a workload, without the last claim. */
  readonly required: (workload: number) => Readonly<Record<string, string>>;
}

const exchanging = ({ title, token, required }: Exchanged): TenantCase<string> => ({
  title,
  env: MANY_ADDRESSES,
  seed: (seeding) =>
    addWorkloads(seeding, seeding.tenantId, WORKLOADS, (index) => ({
      issuer: seeding.issuer.url,
      claims: { ...required(index), [LAST]: "**b" },
    })),
  prepare: ({ issuer }) => issuer.mint({ aud: AUDIENCE, ...token, [LAST]: "a" }),
  run: (attacker, token) => call(attacker, "POST", EXCHANGE, { tenant: attacker.tenantId, token }),
});

const named = <T>(count: number, of: (index: number) => T): Record<string, T> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`c${index}`, of(index)]));

/** Namespaces of the user with slow issuers. */
const NAMESPACES = 8;
const SLOW = NAMESPACES * WORKLOADS;
/** Number of issuers of the other tenant; more than the requests of a measurement. */
const OTHERS = 3000;
const nameOfSlow = (index: number): string => `slow-${index}`;
const nameOfOther = (index: number): string => `first-${index}`;
const tenantOfSlow = (tenantId: string, index: number): string =>
  `${tenantId.slice(0, 19)}9${tenantId.slice(20, -2)}${String(index).padStart(2, "0")}`;

interface Issuers {
  readonly slow: readonly string[];
  readonly others: readonly string[];
  readonly otherTenantId: string;
}

/** The issuers never answer. The other tenant exchanges a token of another issuer each time. */
const issuers: TenantCase<Issuers> = {
  title:
    "64 exchanges at a time with 800 silent issuers in 8 namespaces of a user; the other tenant exchanges the first token of an issuer",
  env: MANY_ADDRESSES,
  parallel: 64,
  async seed(seeding) {
    const { insert, tenantId, ownerId, otherTenantId, issuer, now } = seeding;
    const claims = { repository: "acme/access" };
    for (let index = 0; index < NAMESPACES; index += 1) {
      const tenant = tenantOfSlow(tenantId, index);
      const name = `silent-${index}`;
      await insert("Namespace", 1, () => ({ tenantId: tenant, name, ownerId, createdAt: now }));
      await insert("Member", 1, () => ({ tenantId: tenant, userId: ownerId, role: "owner", addedAt: now }));
      const first = index * WORKLOADS;
      await addWorkloads(seeding, tenant, WORKLOADS, (workload) => ({
        issuer: `${issuer.url}/${nameOfSlow(first + workload)}`,
        claims,
      }));
    }
    await addWorkloads(seeding, otherTenantId, OTHERS, (index) => ({
      issuer: `${issuer.url}/${nameOfOther(index)}`,
      claims,
    }));
  },
  async prepare({ issuer, otherTenantId }) {
    const discovery = (name: string) => `/${name}/.well-known/openid-configuration`;
    const tokenOf = (name: string) =>
      issuer.mint({ iss: `${issuer.url}/${name}`, aud: AUDIENCE, repository: "acme/access" });
    const slow: string[] = [];
    for (let index = 0; index < SLOW; index += 1) {
      issuer.answer(discovery(nameOfSlow(index)), () => {});
      slow.push(await tokenOf(nameOfSlow(index)));
    }
    const others: string[] = [];
    for (let index = 0; index < OTHERS; index += 1) {
      const document = { issuer: `${issuer.url}/${nameOfOther(index)}`, jwks_uri: `${issuer.url}/jwks` };
      issuer.answer(discovery(nameOfOther(index)), (_request, response) => {
        response.setHeader("content-type", "application/json").end(JSON.stringify(document));
      });
      others.push(await tokenOf(nameOfOther(index)));
    }
    return { slow, others, otherTenantId };
  },
  run(attacker, { slow }) {
    const index = Math.floor(Math.random() * SLOW);
    const tenant = tenantOfSlow(attacker.tenantId, Math.floor(index / WORKLOADS));
    return call(attacker, "POST", EXCHANGE, { tenant, token: slow[index] });
  },
  other: ({ others, otherTenantId }, index): BenchRequest => ({
    method: "POST",
    path: EXCHANGE,
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ tenant: otherTenantId, token: others[index] }),
  }),
};

export const WORKLOAD_CASES = {
  claims: exchanging({
    title: "workload exchange: 100 workloads with 16 claims of 8 wildcards each",
    token: named(CLAIMS - 1, () => "a".repeat(560)),
    required: (workload) => named(CLAIMS - 1, (claim) => eightWildcards(workload * CLAIMS + claim)),
  }),
  claimLists: exchanging({
    title: "workload exchange: 100 workloads, and 4 claims that are lists of 360 numbers",
    token: named(LISTS, () => [
      ...Array.from({ length: NUMBERS - 1 }, (_, index) => 100_000 + index),
      Number(LAST_NUMBER),
    ]),
    required: (workload) => named(LISTS, (claim) => digits(workload * LISTS + claim)),
  }),
  issuers,
} as const satisfies Readonly<Record<string, TenantCase>>;
