import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "undici";

/** How long an answer may take, in milliseconds; then the service does not answer at all. */
const PATIENCE = 60_000;

/** Answers of a healthy client that asks again as soon as it has one, in milliseconds; those that wait count too. */
export async function healthyTimes(
  url: string,
  path: string,
  token: string,
  seconds: number,
): Promise<number[]> {
  const client = new Client(url, { headersTimeout: PATIENCE, bodyTimeout: PATIENCE });
  const times: number[] = [];
  const end = performance.now() + seconds * 1000;
  while (performance.now() < end) {
    const started = performance.now();
    const answer = await client.request({
      method: "GET",
      path,
      headers: { authorization: `Bearer ${token}` },
    });
    await answer.body.dump();
    if (answer.statusCode !== 200) throw new Error(`${path} answered ${answer.statusCode}`);
    times.push(performance.now() - started);
    await sleep(5);
  }
  await client.destroy();
  return times.sort((one, other) => one - other);
}

/** The time that a share of sorted times does not exceed. */
export const timeAt = (times: readonly number[], share: number): number =>
  times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0;
