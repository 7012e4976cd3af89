import type { FastifyInstance } from "fastify";
import { digestOf } from "../../secrets/digest.ts";
import type { Services } from "../../services.ts";
import { limitInMemory, tooMany } from "./limitInMemory.ts";
import { Exhausted, MemoryCounts } from "./memoryCounts.ts";
import { countInDatabase, isKnownNetwork } from "./rateLimitCounts.ts";
import "../access/declaredAccess.ts";
import "../listener/requestFacts.ts";

/**
 * Limits the rate of requests for operations that have a rate limit. The response to a request over the limit is 429
 * with `Retry-After`. The service counts a request by its network before it reads the body, and by its account after it
 * has read the body. A network that recently sent an account's correct password has its own limit for that account.
 * Lockouts (rules section 9) have separate counts of failed logins.
 */
export function limitRequests(app: FastifyInstance, services: Services): void {
  const { loginsPerAddress, loginsPerAccount, reportsPerAddress } = services.settings;
  const reports = new MemoryCounts();
  const exhausted = new Exhausted();

  const limitLogins = async (key: string, limit: number): Promise<void> => {
    if (limit <= 0) return;
    const time = services.now().getTime();
    const end = exhausted.exhaustedUntil(key, time);
    if (end !== undefined) throw tooMany(end, time);
    const { count, endsAt } = await countInDatabase(services, key);
    if (count <= limit) return;
    exhausted.add(key, endsAt, time);
    throw tooMany(endsAt, time);
  };
  const limitReports = (network: string): void => {
    limitInMemory(reports, network, reportsPerAddress, services.now().getTime());
  };

  app.addHook("onRequest", async ({ facts, routeOptions }) => {
    const limit = routeOptions.config.operation?.limit ?? routeOptions.config.limit;
    if (limit?.kind === "login") await limitLogins(`login from ${facts.network}`, loginsPerAddress);
    if (limit?.kind === "report") limitReports(facts.network);
  });
  app.addHook("preHandler", async ({ body, facts, routeOptions }) => {
    const field = routeOptions.config.operation?.limit?.account;
    const account = field && (body as Record<string, unknown> | null | undefined)?.[field];
    if (typeof account !== "string" || account === "" || loginsPerAccount <= 0) return;
    // A known network has its own limit. Otherwise, attackers could use up the limit and lock out a user whose network
    // has already sent the correct password.
    const known = await isKnownNetwork(services, account, facts.network);
    // The key contains a digest of the account, because the account may be a token, and names may have any length.
    const key = `login as ${digestOf(account.toLowerCase())}`;
    await limitLogins(known ? `${key} from ${facts.network}` : key, loginsPerAccount);
  });
}
