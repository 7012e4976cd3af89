import { DEVICE_CASES } from "./devices.ts";
import { LIST_CASES } from "./lists.ts";
import { POLICY_CASES } from "./policies.ts";
import { SESSION_CASES } from "./sessions.ts";
import type { TenantCase } from "./tenantCase.ts";
import { WEB_SOCKET_CASES } from "./webSockets.ts";
import { WORKLOAD_CASES } from "./workloads.ts";

const all = {
  ...WORKLOAD_CASES,
  ...POLICY_CASES,
  ...WEB_SOCKET_CASES,
  ...DEVICE_CASES,
  ...LIST_CASES,
  ...SESSION_CASES,
} as const;

/** Name of a case on the command line. */
export type TenantCaseName = keyof typeof all;

/** The cases by their names on the command line. The measurement gives each case its own prepared data. */
export const TENANT_CASES = all as Readonly<Record<TenantCaseName, TenantCase>>;
