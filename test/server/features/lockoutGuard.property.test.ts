import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import { findRow } from "../../../server/db/sql/rows.ts";
import { workloadSession } from "../../../server/features/trustedWorkloads/session.ts";
import { withSharedApp } from "../http/lab.ts";
import type { CallOptions, TestUser } from "../http/testApp.ts";

const app = withSharedApp();
const DAY = 24 * 60 * 60;
const ROLES = ["observer", "operator", "administrator"] as const;
type Role = (typeof ROLES)[number];
const USERS = ["bob", "cy", "dan"] as const;
const WORKLOADS = ["deploy", "nightly"] as const;
type User = (typeof USERS)[number];
type Workload = (typeof WORKLOADS)[number];

/** The access to the namespace as this test understands it. Times and ends are days since the start of the test. */
interface Model {
  readonly today: number;
  readonly members: Readonly<Partial<Record<User, { readonly role: Role; readonly end: number }>>>;
  readonly workloads: Readonly<Partial<Record<Workload, { readonly role: Role; readonly branch: string }>>>;
}

const by = fc.constantFrom<(User | Workload | "owner" | "key")[]>(
  ...USERS,
  ...USERS,
  ...WORKLOADS,
  ...WORKLOADS,
  "owner",
  "key",
);
const user = fc.constantFrom(...USERS);
const workload = fc.constantFrom(...WORKLOADS);
const role = fc.constantFrom(...ROLES, "administrator");
/** Days until the end of an access; infinite: no end. */
const days = fc.constantFrom(-1, 1, 5, 9, Number.POSITIVE_INFINITY);
const branch = fc.constantFrom("main", "release");

const step = fc.oneof(
  fc.record({ kind: fc.constant("invite"), by, user, role, days }),
  fc.record({ kind: fc.constant("change"), by, user, role: fc.option(role), days: fc.option(days) }),
  fc.record({ kind: fc.constant("remove"), by, user }),
  fc.record({ kind: fc.constant("trust"), by, workload, role, branch }),
  fc.record({ kind: fc.constant("put"), by, workload, role, branch }),
  fc.record({ kind: fc.constant("distrust"), by, workload }),
  fc.record({ kind: fc.constantFrom("createKey", "renameKey", "deleteKey"), by }),
  fc.record({ kind: fc.constant("wait"), days: fc.constantFrom(1, 4) }),
);
type Step = fc.ArrayElement<fc.GeneratedValue<typeof step>[]>;
