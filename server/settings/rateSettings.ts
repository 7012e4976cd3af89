import { setting } from "./setting.ts";
import { countOrNone } from "./values.ts";

/** Settings of rate limits. */
export const rateSettings = {
  loginsPerAddress: setting({
    variable: "GATEHOUSE_LOGINS_PER_ADDRESS",
    flag: "--logins-per-address",
    value: "number",
    about:
      "Most login-type requests of one address (of IPv6 one /64) in a minute, over all instances; 0: no limit",
    allowed: "a whole number, 0 or more",
    fallback: "60",
    schema: countOrNone,
  }),
  loginsPerAccount: setting({
    variable: "GATEHOUSE_LOGINS_PER_ACCOUNT",
    flag: "--logins-per-account",
    value: "number",
    about:
      "Most login-type requests for one user name in a minute, from all addresses but those of the last 30 days' " +
      "logins, each of which has that limit for itself; 0: no limit",
    allowed: "a whole number, 0 or more",
    fallback: "30",
    schema: countOrNone,
  }),
  reportsPerAddress: setting({
    variable: "GATEHOUSE_REPORTS_PER_ADDRESS",
    flag: "--reports-per-address",
    value: "number",
    about:
      "Most reports of devices from one address in a minute, counted by each instance for itself. An agent reports " +
      "when it starts, and every 10 to 11 minutes while it has a tunnel, so it is the fleet behind one address that " +
      "starts at once which needs the room; 0: no limit",
    allowed: "a whole number, 0 or more",
    fallback: "60000",
    schema: countOrNone,
  }),
  enrolmentsPerAddress: setting({
    variable: "GATEHOUSE_ENROLMENTS_PER_ADDRESS",
    flag: "--enrolments-per-address",
    value: "number",
    about:
      "Most devices of one address in a minute that the service does not know yet, counted by each instance for " +
      "itself: as many can be brought into use behind one address at a time; 0: no limit",
    allowed: "a whole number, 0 or more",
    fallback: "2000",
    schema: countOrNone,
  }),
  listBacklog: setting({
    variable: "GATEHOUSE_LIST_BACKLOG",
    flag: "--list-backlog",
    value: "milliseconds",
    about:
      "How long the waiting lists of one namespace may hold up an instance in all, in milliseconds, by what its lists " +
      "took lately. A further list of it is answered with 503 and Retry-After; no other request is. Lists wait only on " +
      "SQLite, where all requests wait while one is made; 0: no limit",
    allowed: "a whole number, 0 or more",
    fallback: "500",
    schema: countOrNone,
  }),
};
