import { sshKeyLine } from "../../test/provider/support/programs.ts";
import type { BenchRequest } from "./load.ts";
import { NAMESPACES, type NamespaceName, PASSWORD, RARE_TAG, reportOf, USERNAMES } from "./seed.ts";

/** What is asked of the service, over and over. */
export interface Case {
  readonly title: string;
  /** The namespace that the caller's token is for; left out: no credential is sent. */
  readonly namespace?: NamespaceName;
  readonly request: (index: number) => BenchRequest;
  /** Requests that go before the measured ones, so that the service has met all that they are about. */
  readonly before?: number;
  /** Asked of a server like the floor's instead of the service: what that costs without all that a service does beside. */
  readonly bare?: true;
}

const get = (path: string) => (): BenchRequest => ({ method: "GET", path });
const post = (path: string, body: unknown): BenchRequest => ({
  method: "POST",
  path,
  body: JSON.stringify(body),
});

const filter = (name: string, value: unknown): string =>
  encodeURIComponent(
    Buffer.from(
      JSON.stringify([{ type: "property", params: { name, operator: "contains", value } }]),
    ).toString("base64"),
  );

/** Each device in turn; when measured, all have reported before, as they have but for the first minute of a run. */
const deviceAuth = (namespace: NamespaceName): Case => {
  const { devices } = NAMESPACES[namespace];
  return {
    title: `device authentication, ${devices.toLocaleString("en")} device${devices === 1 ? "" : "s"}`,
    request: (index) => post("/api/devices/auth", reportOf(namespace, index % devices)),
    before: devices,
  };
};

const deviceList = (title: string, query: string): Case => ({
  title: `device list, 100,000 devices, ${title}`,
  namespace: "many",
  request: get(`/api/devices?${query}`),
});

/** All cases by their names on the command line. */
export const CASES: Readonly<Record<string, Case>> = {
  namespaces: { title: "namespace list", namespace: "keys", request: get("/api/namespaces") },
  "namespaces-large": {
    title: "namespace list, 101,000 devices in them",
    namespace: "many",
    request: get("/api/namespaces"),
  },
  keys: {
    title: "100-key list",
    namespace: "keys",
    request: get("/api/sshkeys/public-keys?per_page=100"),
  },
  "keys-bare": { title: "the same 100 rows by a bare route", bare: true, request: get("/keys") },
  "key-create": {
    title: "key create",
    namespace: "created",
    request: (index) =>
      post("/api/sshkeys/public-keys", {
        data: Buffer.from(sshKeyLine()).toString("base64"),
        name: `key-${index}`,
        username: ".*",
        filter: { hostname: ".*" },
      }),
  },
  login: {
    title: "login",
    request: () => post("/api/login", { username: USERNAMES[0], password: PASSWORD }),
  },
  "auth-1": deviceAuth("one"),
  "auth-1000": deviceAuth("thousand"),
  "auth-100000": deviceAuth("many"),
  "auth-restart": {
    ...deviceAuth("many"),
    title: "device authentication, first report of each since the start",
    before: 0,
  },
  "devices-tag": deviceList("filtered by tag", `per_page=100&filter=${filter("tags", [RARE_TAG])}`),
  "devices-name": deviceList(
    "filtered by part of the name",
    `per_page=100&filter=${filter("name", "-4242")}`,
  ),
  "devices-page-1": deviceList("page 1", "per_page=100"),
  "devices-page-1000": deviceList("page 1,000", "per_page=100&page=1000"),
};
