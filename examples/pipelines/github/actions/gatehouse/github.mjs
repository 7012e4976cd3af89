// Sends the action's requests to GitHub's API. Requires only Node.js 22. Reads the token from `GITHUB_TOKEN`, and sends
// it only in the headers of requests to `GITHUB_API_URL`.
import { appendFileSync, readFileSync } from "node:fs";
import { basename } from "node:path";

const { env } = process;
const [TRIES, TIME_LIMIT_MS, LONGEST_WAIT_S] = [4, 30_000, 60];
/**
 * Delays, in seconds, before each repeated request for the merged pull request. GitHub may list the pull request only
 * some time after the push.
 */
const AGAIN_S = (env.GATEHOUSE_AGAIN_S ?? "2 4 8 16 30").split(" ").map(Number);
const START_MANUALLY = "start this workflow manually to review and apply the branch";

/** The permissions that a job needs for the requests of each command. */
const NEEDS = {
  comment: "pull-requests: write",
  issue: "issues: write",
  "find-review": "contents: read, pull-requests: read and actions: read",
};

const commands = { comment, issue, "find-review": findReview };
const [command = "", ...words] = process.argv.slice(2);

try {
  if (!Object.hasOwn(commands, command)) throw new Error(`unknown command ${command}`);
  await commands[command](...words);
} catch (error) {
  console.error(`::error::github.mjs ${command}: ${error.message}`);
  process.exitCode = 1;
}

/** Creates the comment on the pull request, or updates the comment of an earlier run of this job. */
async function comment(file) {
  const { pull_request: pull } = JSON.parse(readFileSync(env.GITHUB_EVENT_PATH, "utf8"));
  const review = readFileSync(file, "utf8");
  const [marker] = review.split("\n", 1);
  const body = `${review}\n_Review of commit ${pull.head.sha} by [this run](${runUrl()})._\n`;
  const comments = await all(`/issues/${pull.number}/comments`);
  const earlier = comments.find((one) => isOurs(one, marker));
  const saved = earlier
    ? await send("PATCH", `/issues/comments/${earlier.id}`, { body })
    : await send("POST", `/issues/${pull.number}/comments`, { body });
  console.log(`${earlier ? "Updated" : "Created"} ${saved.html_url}`);
}

/**
 * Opens an issue if there is drift, or updates the open issue if the drift has changed. Closes the open issue if there
 * is no drift.
 */
async function issue(file, program, code) {
  const marker = `<!-- gatehouse drift ${program.replaceAll(/[^\w./-]/g, "_").replaceAll("--", "__")} -->`;
  const open = (await all("/issues?state=open")).find((one) => !one.pull_request && isOurs(one, marker));
  if (code === "0") {
    if (!open) return console.log("No drift and no open issue.");
    await send("POST", `/issues/${open.number}/comments`, {
      body: `[This run](${runUrl()}) found no drift.`,
    });
    await send("PATCH", `/issues/${open.number}`, { state: "closed", state_reason: "completed" });
    return console.log(`Closed ${open.html_url}`);
  }
  const found = `${marker}\n${readFileSync(file, "utf8")}\n`;
  if (open && undated(open.body.replaceAll("\r\n", "\n")).startsWith(undated(found)))
    return console.log(`The drift is unchanged: ${open.html_url}`);
  const body = `${found}_Found by [this run](${runUrl()}). If a policy test fails, see the log of the run._\n`;
  const saved = open
    ? await send("PATCH", `/issues/${open.number}`, { body })
    : await send("POST", "/issues", { title: `Drift of the access policy of ${program}`, body });
  console.log(`${open ? "Updated" : "Opened"} ${saved.html_url}`);
}

/**
 * Removes the parts of a report that differ in each run: the request id, and the time when a change was first seen. A
 * report contains this time only if the service does not report the user of the change. On a new runner, the time is
 * always the current time.
 */
function undated(report) {
  return report.replaceAll(/first seen [\d-]+ [\d:]+ UTC|request id [\w-]+/g, "");
}

/**
 * Finds the workflow run with the reviewed plan. After a push, it is the latest successful review of the last commit of
 * the merged pull request. If a user started this run manually, it is this run.
 */
async function findReview() {
  let id = env.GITHUB_RUN_ID;
  if (env.GITHUB_EVENT_NAME === "push") {
    const pull = await mergedPull();
    if (!pull)
      throw new Error(`cannot find a pull request that was merged as ${env.GITHUB_SHA}; ${START_MANUALLY}`);
    const workflow = basename(env.GITHUB_WORKFLOW_REF.split("@", 1)[0]);
    const query = `event=pull_request&status=success&head_sha=${pull.head.sha}`;
    const runs = await all(`/actions/workflows/${workflow}/runs?${query}`, "workflow_runs");
    const [latest] = runs.toSorted((one, other) => other.id - one.id);
    if (!latest)
      throw new Error(
        `cannot find a successful review of ${pull.head.sha} of #${pull.number}; ${START_MANUALLY}`,
      );
    console.log(`#${pull.number} was reviewed by ${latest.html_url}`);
    id = latest.id;
  }
  appendFileSync(env.GITHUB_OUTPUT, `run-id=${id}\n`);
}

/**
 * Returns the pull request that was merged as this commit. GitHub may list the pull request only some time after the
 * push.
 */
async function mergedPull() {
  for (const seconds of [...AGAIN_S, undefined]) {
    const pulls = await all(`/commits/${env.GITHUB_SHA}/pulls`);
    const pull = pulls.find((one) => one.merged_at && one.merge_commit_sha === env.GITHUB_SHA);
    if (pull || seconds === undefined) return pull;
    await pause(seconds);
  }
}

/**
 * Returns true for a comment or issue that this action created. Other users can copy the marker, so the author must
 * match.
 */
function isOurs({ user, body }, marker) {
  return user?.login === env.AUTHOR && body?.split(/\r?\n/, 1)[0] === marker;
}

function runUrl() {
  return `${env.GITHUB_SERVER_URL}/${env.GITHUB_REPOSITORY}/actions/runs/${env.GITHUB_RUN_ID}`;
}

/** Returns all pages of a list. */
async function all(path, field) {
  const found = [];
  const next = new URL(repositoryUrl(path));
  next.searchParams.set("per_page", "100");
  for (let page = 1; ; page++) {
    next.searchParams.set("page", String(page));
    const { body, hasMore } = await request("GET", next);
    found.push(...(field ? body[field] : body));
    if (!hasMore) return found;
  }
}

async function send(method, path, body) {
  return (await request(method, repositoryUrl(path), body)).body;
}

function repositoryUrl(path) {
  return `${env.GITHUB_API_URL}/repos/${env.GITHUB_REPOSITORY}${path}`;
}

async function request(method, url, body) {
  for (let tried = 1; ; tried++) {
    const answer = await attempt(method, url, body);
    // A POST without a response may have succeeded, so a retry could create a duplicate. After a rate limit response, a
    // retry is safe, because GitHub did not process the request.
    const isLimit = answer.status === 429 || (answer.status === 403 && answer.retryAfter);
    const again = isLimit || (method !== "POST" && (answer.status >= 500 || answer.status === 0));
    if (answer.status >= 200 && answer.status < 300) return answer;
    if (!again || tried === TRIES) throw new Error(`${method} ${new URL(url).pathname}: ${reasonOf(answer)}`);
    const seconds = Number(answer.retryAfter ?? 2 ** tried);
    await pause(Math.min(seconds, LONGEST_WAIT_S));
  }
}

function pause(seconds) {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1000));
}

async function attempt(method, url, body) {
  try {
    const response = await fetch(url, {
      method,
      signal: AbortSignal.timeout(TIME_LIMIT_MS),
      headers: {
        accept: "application/vnd.github+json",
        authorization: `Bearer ${env.GITHUB_TOKEN}`,
        "content-type": "application/json",
        "x-github-api-version": "2022-11-28",
      },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return {
      status: response.status,
      body: response.ok ? JSON.parse(text) : text.slice(0, 300),
      hasMore: /rel="next"/.test(response.headers.get("link") ?? ""),
      retryAfter: response.headers.get("retry-after"),
    };
  } catch (error) {
    return { status: 0, body: error.cause?.message ?? error.message };
  }
}

function reasonOf({ status, body }) {
  const needs = `the job needs the permissions ${NEEDS[command]}`;
  return [`${status || "no response"}`, ...(status === 403 || status === 404 ? [needs] : []), body].join(
    "; ",
  );
}
