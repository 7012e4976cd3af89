import type { Operations } from "@gatehouse-access/sdk/contract";
import { encodeFilter, operator, property } from "../http/testApp.ts";

type Id = keyof Operations;

/** A list request whose query plan is tested. */
interface Form {
  readonly name: string;
  readonly query: Readonly<Record<string, string | number>>;
  /**
   * True if no index returns the rows in the order of the list, so the database has to sort them. Examples are a list
   * sorted by a requested field, and a list filtered by a tag.
   */
  readonly sorted?: boolean;
  /** A table whose rows are visible to all callers. An index gives the order and the number of the rows. */
  readonly whole?: string;
}

const filtered = (...items: unknown[]) => ({ filter: encodeFilter(items) });
const DEFAULT: Form = { name: "default", query: {} };
const DEEP: Form = { name: "deep page", query: { page: 15, per_page: 100 } };

const DEVICES: readonly Form[] = [
  DEFAULT,
  DEEP,
  ...["accepted", "pending", "removed"].map((status) => ({ name: status, query: { status } })),
  { name: "oldest report first", query: { order_by: "asc" } },
  { name: "by name", query: { sort_by: "name" }, sorted: true },
  { name: "by online", query: { sort_by: "online" }, sorted: true },
  { name: "name is", query: filtered(property("name", "eq", "host-7")), sorted: true },
  { name: "name contains", query: filtered(property("name", "contains", "7")) },
  { name: "name contains more", query: filtered(property("name", "contains", "-777")) },
  { name: "online", query: filtered(property("online", "bool", true)) },
  { name: "tag", query: filtered(property("tags", "contains", ["edge"])), sorted: true },
  { name: "tags", query: filtered(property("tags", "eq", ["edge", "core"])), sorted: true },
  { name: "not the tag", query: filtered(property("tags", "ne", "edge")) },
  { name: "part of a tag", query: filtered(property("tags", "contains", "dg")), sorted: true },
  {
    name: "any of",
    query: filtered(property("tags", "contains", ["edge"]), property("name", "eq", "x"), operator("or")),
  },
  { name: "namespace", query: filtered(property("namespace", "eq", "lab")) },
];

/** The requests that are tested for each list. */
export const LISTS: Readonly<Partial<Record<Id, readonly Form[]>>> = {
  getDevices: DEVICES,
  getContainers: DEVICES,
  getTags: [DEFAULT],
  getPublicKeys: [
    DEFAULT,
    DEEP,
    { name: "name is", query: filtered(property("name", "eq", "key-7")) },
    { name: "name contains", query: filtered(property("name", "contains", "7")) },
    { name: "tag", query: filtered(property("filter.tags", "contains", ["edge"])) },
    { name: "tags", query: filtered(property("filter.tags", "eq", ["edge"])) },
  ],
  getFirewallRules: [DEFAULT, DEEP],
  getSessions: [DEFAULT, DEEP],
  // `getDevicesMostUsed` sorts devices by their number of sessions, which no index contains.
  getDevicesMostUsed: [{ ...DEFAULT, sorted: true }],
  listTunnels: [DEFAULT, DEEP],
  connectorList: [DEFAULT, DEEP, { name: "enabled", query: { enable: "true" } }],
  listAnnouncements: [DEFAULT, DEEP, { name: "oldest first", query: { order_by: "asc" } }].map((form) => ({
    ...form,
    whole: "Announcement",
  })),
  getAuditTrail: [
    DEFAULT,
    DEEP,
    { name: "since", query: { since: new Date(0).toISOString() } },
    { name: "of one kind", query: { kind: "device" } },
  ],
  listApiKeys: [
    DEFAULT,
    DEEP,
    { name: "by name", query: { sort_by: "name", order_by: "asc" } },
    { name: "by role", query: { sort_by: "role" }, sorted: true },
  ],
  listTrustedWorkloads: [DEFAULT, DEEP],
  getNamespaces: [
    // The memberships determine the namespaces of a user, so the service sorts the namespaces after it has read them.
    { ...DEFAULT, sorted: true },
    { ...DEEP, sorted: true },
    { name: "name contains", query: filtered(property("name", "contains", "7")), sorted: true },
    { name: "member", query: filtered(property("members.id", "contains", ["x"])), sorted: true },
    { name: "devices", query: filtered(property("device_count", "gt", 1)), sorted: true },
  ],
};
