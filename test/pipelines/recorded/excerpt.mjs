// Writes github-api.json, the part of GitHub's published API description that the pipelines use: parameters, request
// bodies and responses, without documentation. The package is too large for a dependency:
//   npm install --no-save @octokit/openapi@23.0.2 && node test/pipelines/recorded/excerpt.mjs
import { writeFileSync } from "node:fs";
import openapi from "@octokit/openapi";

const REPOSITORY = "/repos/{owner}/{repo}";
const OPERATIONS = [
  ["get", "/issues/{issue_number}/comments"],
  ["post", "/issues/{issue_number}/comments"],
  ["patch", "/issues/comments/{comment_id}"],
  ["get", "/issues"],
  ["post", "/issues"],
  ["patch", "/issues/{issue_number}"],
  ["get", "/commits/{commit_sha}/pulls"],
  ["get", "/actions/workflows/{workflow_id}/runs"],
];
/** Keywords of schemas that a validator of JSON Schema ignores. */
const UNUSED = new Set([
  "description",
  "example",
  "examples",
  "externalDocs",
  "deprecated",
  "x-github",
  "default",
]);

function strip(value, isNames = false) {
  if (Array.isArray(value)) return value.map((item) => strip(item));
  if (typeof value !== "object" || value === null) return value;
  const kept = Object.entries(value).filter(([name]) => isNames || !UNUSED.has(name));
  return Object.fromEntries(
    kept.map(([name, inner]) => [name, strip(inner, !isNames && name === "properties")]),
  );
}

const { paths, info } = openapi.schemas["api.github.com.deref"];
const operations = OPERATIONS.map(([method, path]) => {
  const { parameters, requestBody, responses } = paths[REPOSITORY + path][method];
  const [status] = Object.keys(responses);
  return {
    method: method.toUpperCase(),
    path: REPOSITORY + path,
    parameters: parameters.map(({ name, in: place, required = false, schema }) => ({
      name,
      in: place,
      required,
      schema: strip(schema),
    })),
    ...(requestBody && { body: strip(requestBody.content["application/json"].schema) }),
    status: Number(status),
    answer: strip(responses[status].content["application/json"].schema),
  };
});
const source = `@octokit/openapi 23.0.2, api.github.com ${info.version}, MIT`;
const lines = operations.map((operation) => JSON.stringify(operation)).join(",\n");
writeFileSync(
  new URL("github-api.json", import.meta.url),
  `{"source":${JSON.stringify(source)},"operations":[\n${lines}\n]}\n`,
);
