/** Test files that start processes of the build or read built files. The build runs before these tests. */
export const ofBuilt = [
  "test/{agent,deploy,endToEnd,engine,gateway,packaging,pages,pipelines,plugin,provider,review,terraform}/**/*.test.ts",
  "test/server/{pages,process}/**/*.test.ts",
  "test/server/sqlite/{backup,restore,fullDisk,listFlood,secondProcess,memory}.test.ts",
  "test/sdk/{service,workloadService}.test.ts",
  "test/docs.test.ts",
];

/** Test files of PostgreSQL and of the database layer. */
export const onPostgresql = ["test/server/{postgresql,db}/**/*.test.ts"];

/**
 * Provider tests that also run against a service that implements only the specification, without our extensions. The
 * other files of test/provider send no request, count the requests to our service, or start a service of their own. The
 * file lostAnswers starts such a service in addition to ours, since the results differ without idempotency keys.
 */
export const beforeSparse = [
  "lifecycle",
  "drift",
  "adoption",
  "tags",
  "apiKeyRotation",
  "movedObjects",
  "deviceSelectors",
  "convergence",
  "membershipEnded",
].map((name) => `test/provider/${name}.test.ts`);

/** Provider tests that also run through the plugin's protocol: all tests that run programs in order. */
export const throughPlugin = [
  ...beforeSparse,
  ...[
    "lostAnswers",
    "servers",
    "intermediaries",
    "requests",
    "newerService",
    "expiry",
    "invitations",
    "lockoutGuard",
    "namespaceSettings",
    "workload",
  ].map((name) => `test/provider/${name}.test.ts`),
];

/**
 * Provider tests that also run through Terraform's protocol: the files of {@link throughPlugin} except two. These two
 * files take the most time, and find no error that the other files do not find. The tests handle these differences of
 * Terraform:
 * - Terraform does not send resource names to the provider. Errors about two resources with one object contain at most
 *   their ids. A generated name starts with the kind. A later run does not know the objects of an interrupted run, and
 *   fails on an equal rule.
 * - Terraform destroys an object before it creates the replacement. It forces a replacement without a call to the
 *   provider.
 * - Terraform first deletes the objects of removed resources, even if another resource declares the object.
 * - Terraform states contain no secret.
 * - One update replaces an API key, and its plan does not contain the reason.
 */
export const throughTerraform = throughPlugin.filter((file) => !/(convergence|lostAnswers)\.test/.test(file));

/** True if the tests use a service that sends only the fields of the specification: see vitest.config.ts. */
export const isSparse = process.env.TEST_SERVICE === "sparse";
