import { cidr, getDevices, getMembers, getMembersOutput, hostname, login } from "@gatehouse-access/provider";

// Patterns of the service are not anchored. These are, so that "root" does not match "notroot".
export const patterns = {
  root: login("root"), // ^root$
  web: hostname("web-01", "web-02"), // ^(web-01|web-02)$
  office: cidr("192.0.2.0/24"), // ^192\.0\.2\.(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])$
};

// Lookups return promises, which every input of a resource accepts.
export const owner = getMembers().then((members) => members.find(({ role }) => role === "owner")?.email);
export const waiting = getDevices({ status: "pending" }).then((devices) => devices.map(({ name }) => name));

// For outputs of other resources, such as a tenant, use the variant for outputs.
export const roles = getMembersOutput({ tenant: getDevices().then(([device]) => device?.tenantId) }).apply(
  (members) => members.map(({ role }) => role),
);
