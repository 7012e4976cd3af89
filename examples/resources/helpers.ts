import { cidr, getDevices, getMembers, getMembersOutput, hostname, login } from "@gatehouse-access/provider";

// The service does not anchor patterns. The helpers return anchored patterns, so that "root" does not match "notroot".
export const patterns = {
  root: login("root"), // ^root$
  web: hostname("web-01", "web-02"), // ^(web-01|web-02)$
  office: cidr("192.0.2.0/24"), // ^192\.0\.2\.(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])$
};

// Lookups return promises. Every input of a resource accepts a promise.
export const owner = getMembers().then((members) => members.find(({ role }) => role === "owner")?.email);
export const waiting = getDevices({ status: "pending" }).then((devices) => devices.map(({ name }) => name));

// If an argument is an output of a different resource, such as its tenant, use the function with the suffix `Output`.
export const roles = getMembersOutput({ tenant: getDevices().then(([device]) => device?.tenantId) }).apply(
  (members) => members.map(({ role }) => role),
);
