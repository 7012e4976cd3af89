import { type Case, get, send } from "./case.ts";
import { contentsOf, type NamespaceName, PASSWORD, RARE_TAG, reportOf, USERNAMES } from "./namespaces.ts";

const filter = (name: string, value: unknown): string =>
  encodeURIComponent(
    Buffer.from(
      JSON.stringify([{ type: "property", params: { name, operator: "contains", value } }]),
    ).toString("base64"),
  );

/** Each device in turn; when measured, all have reported before, as they have but for the first minute of a run. */
const deviceAuth = (namespace: NamespaceName): Case => {
  const { devices = 0 } = contentsOf(namespace);
  return {
    title: `device authentication, ${devices.toLocaleString("en")} device${devices === 1 ? "" : "s"}`,
    request: (index) => send("POST", "/api/devices/auth", reportOf(namespace, index % devices)),
    before: devices,
  };
};

const deviceList = (title: string, query: string): Case => ({
  title: `device list, 100,000 devices, ${title}`,
  namespaces: ["many"],
  request: get(`/api/devices?${query}`),
});

/** Cases that change nothing which people declare, by their names on the command line. */
export const reads = {
  namespaces: { title: "namespace list", namespaces: ["keys"], request: get("/api/namespaces") },
  "namespaces-large": {
    title: "namespace list, 101,000 devices in them",
    namespaces: ["many"],
    request: get("/api/namespaces"),
  },
  keys: {
    title: "100-key list",
    namespaces: ["keys"],
    request: get("/api/sshkeys/public-keys?per_page=100"),
  },
  "keys-bare": { title: "the same 100 rows by a bare route", bare: true, request: get("/keys") },
  login: {
    title: "login",
    request: () => send("POST", "/api/login", { username: USERNAMES[0], password: PASSWORD }),
  },
  "auth-1": deviceAuth("one"),
  "auth-1000": deviceAuth("thousand"),
  "auth-100000": deviceAuth("many"),
  "auth-restart": {
    ...deviceAuth("many"),
    title: "device authentication, first report of each since the start",
    before: 0,
  },
  "devices-1000": {
    title: "device list, 100 of 1,000 devices",
    namespaces: ["thousand"],
    request: get("/api/devices?per_page=100"),
  },
  "devices-tag": deviceList("filtered by tag", `per_page=100&filter=${filter("tags", [RARE_TAG])}`),
  "devices-name": deviceList(
    "filtered by part of the name",
    `per_page=100&filter=${filter("name", "-4242")}`,
  ),
  "devices-page-1": deviceList("page 1", "per_page=100"),
  "devices-page-1000": deviceList("page 1,000", "per_page=100&page=1000"),
} as const satisfies Readonly<Record<string, Case>>;
