import { cidr, getDevices, getMembers, getMembersOutput, hostname, login } from "@gatehouse-access/provider";

// Patterns of the service are not anchored; these are, so that "root" does not admit "notroot".
export const patterns = {
  root: login("root"), // ^root$
  web: hostname("web-01", "web-02"), // ^(web-01|web-02)$
  office: cidr("192.0.2.0/24"), // ^192\.0\.2\.(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])$
};

// Lookups are promises; every input of a resource takes one.
export const owner = getMembers().then((members) => members.find(({ role }) => role === "owner")?.email);
export const waiting = getDevices({ status: "pending" }).then((devices) => devices.map(({ name }) => name));

// What another resource gives, such as its tenant, goes into the form for outputs.
export const roles = getMembersOutput({ tenant: getDevices().then(([device]) => device?.tenantId) }).apply(
  (members) => members.map(({ role }) => role),
);
