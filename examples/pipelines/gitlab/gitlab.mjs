// Writes the review as a note on a merge request. Requires only Node.js 22. Reads the token from `GITLAB_TOKEN`, and
// sends it only in the headers of requests to `CI_API_V4_URL`.
import { readFileSync } from "node:fs";

const { env } = process;
const [TRIES, TIME_LIMIT_MS, LONGEST_WAIT_S] = [4, 30_000, 60];
const [command, file = ""] = process.argv.slice(2);

try {
  if (command !== "note") throw new Error(`unknown command ${command}`);
  await note();
} catch (error) {
  console.error(`gitlab.mjs ${command}: ${error.message}`);
  process.exitCode = 1;
}

/** Creates the note, or updates the note of an earlier job. */
async function note() {
  if (!env.GITLAB_TOKEN)
    throw new Error("GITLAB_TOKEN is missing. Set it, since a CI_JOB_TOKEN cannot write notes.");
  const review = readFileSync(file, "utf8");
  const [marker] = review.split("\n", 1);
  // In a merged results pipeline, `CI_COMMIT_SHA` is an internal commit that users cannot find.
  const commit = env.CI_MERGE_REQUEST_SOURCE_BRANCH_SHA || env.CI_COMMIT_SHA;
  const body = `${review}\n_Review of commit ${commit} by [this job](${env.CI_JOB_URL})._\n`;
  const { body: self } = await request("GET", "/user");
  const notes = `/projects/${env.CI_MERGE_REQUEST_PROJECT_ID}/merge_requests/${env.CI_MERGE_REQUEST_IID}/notes`;
  // Other users can copy the marker, so the author must match.
  const earlier = (await all(notes)).find(
    (one) => one.author.id === self.id && one.body.split(/\r?\n/, 1)[0] === marker,
  );
  if (earlier) await request("PUT", `${notes}/${earlier.id}`, { body });
  else await request("POST", notes, { body });
  console.log(`${earlier ? "Updated" : "Created"} the note on !${env.CI_MERGE_REQUEST_IID}`);
}

/** Returns all pages of a list. */
async function all(path) {
  const found = [];
  for (let page = "1"; page !== ""; ) {
    const answer = await request("GET", `${path}?per_page=100&page=${page}`);
    found.push(...answer.body);
    page = answer.nextPage;
  }
  return found;
}

async function request(method, path, body) {
  for (let tried = 1; ; tried++) {
    const answer = await attempt(method, path, body);
    if (answer.status >= 200 && answer.status < 300) return answer;
    // A POST without a response may have succeeded, so a retry could create a duplicate.
    const again =
      answer.status === 429 || (method !== "POST" && (answer.status >= 500 || answer.status === 0));
    if (!again || tried === TRIES) throw new Error(`${method} ${path}: ${reasonOf(answer)}`);
    const seconds = Number(answer.retryAfter ?? 2 ** tried);
    await new Promise((resolve) => setTimeout(resolve, Math.min(seconds, LONGEST_WAIT_S) * 1000));
  }
}

async function attempt(method, path, body) {
  try {
    const response = await fetch(`${env.CI_API_V4_URL}${path}`, {
      method,
      signal: AbortSignal.timeout(TIME_LIMIT_MS),
      headers: { "private-token": env.GITLAB_TOKEN, "content-type": "application/json" },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return {
      status: response.status,
      body: response.ok ? JSON.parse(text) : text.slice(0, 300),
      nextPage: response.headers.get("x-next-page") ?? "",
      retryAfter: response.headers.get("retry-after"),
    };
  } catch (error) {
    return { status: 0, body: error.cause?.message ?? error.message };
  }
}

function reasonOf({ status, body }) {
  const needs = "GITLAB_TOKEN needs the scope api, and at least the role Reporter in this project";
  const isRefused = status === 401 || status === 403 || status === 404;
  return [`${status || "no response"}`, ...(isRefused ? [needs] : []), body].join("; ");
}
