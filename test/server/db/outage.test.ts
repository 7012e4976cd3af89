import { DriverAdapterError, type MappedError } from "@prisma/driver-adapter-utils";
import { expect, test } from "vitest";
import { Prisma } from "../../../server/db/generated/sqlite/client.ts";
import { outageOf } from "../../../server/db/outage.ts";
import { answerTo } from "../../../server/errors.ts";

const ofSqlite = (originalCode: string) =>
  new DriverAdapterError({ kind: "sqlite", extendedCode: 1, message: "inside", originalCode });
const ofPostgresql = (originalCode: string) =>
  new DriverAdapterError({
    kind: "postgres",
    code: originalCode,
    severity: "FATAL",
    message: "inside",
    originalCode,
    detail: undefined,
    column: undefined,
    hint: undefined,
  });
const ofKind = (cause: MappedError) => new DriverAdapterError(cause);
const ofPrisma = (code: string, inner?: Error) =>
  new Prisma.PrismaClientKnownRequestError("inside", {
    code,
    clientVersion: "",
    ...(inner && { meta: { driverAdapterError: inner } }),
  });
const ofSystem = (code: string, syscall: string) => Object.assign(new Error("inside"), { code, syscall });

test.each([
  ["unwritable", ["SQLITE_FULL", "SQLITE_READONLY_DBMOVED", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_FSYNC"]],
  ["unreachable", ["SQLITE_CANTOPEN", "SQLITE_IOERR_READ", "SQLITE_IOERR_SHORT_READ"]],
  ["busy", ["SQLITE_BUSY", "SQLITE_LOCKED"]],
])("classifies errors of SQLite as %s", (outage, codes) => {
  expect(codes.map((code) => outageOf(ofSqlite(code)))).toEqual(codes.map(() => outage));
  expect(codes.map((code) => outageOf(ofPrisma("P2039", ofSqlite(code))))).toEqual(codes.map(() => outage));
  expect(codes.map((code) => outageOf(ofPrisma("P2010", ofSqlite(code))))).toEqual(codes.map(() => outage));
});

test.each([
  ["unwritable", ["53100", "58030", "25006"]],
  ["unreachable", ["08006", "08003", "53300", "57P01", "57P02", "57P03", "3D000", "28P01"]],
  ["busy", ["55P03", "57014", "25P03", "53200"]],
])("classifies errors of PostgreSQL as %s", (outage, codes) => {
  expect(codes.map((code) => outageOf(ofPostgresql(code)))).toEqual(codes.map(() => outage));
  expect(codes.map((code) => outageOf(ofPrisma("P2039", ofPostgresql(code))))).toEqual(
    codes.map(() => outage),
  );
});

test("classifies connection errors and Prisma's own errors", () => {
  const lost = [
    ofKind({ kind: "ConnectionClosed" }),
    ofPrisma("P1001", ofKind({ kind: "DatabaseNotReachable" })),
    new Error("Connection terminated unexpectedly"),
    new Error("timeout exceeded when trying to connect"),
    new Error("Client has encountered a connection error and is not queryable"),
    ofSystem("EPIPE", "write"),
    ofSystem("ENOENT", "connect"),
    Object.assign(new AggregateError([], "inside"), { code: "ECONNREFUSED" }),
  ];
  expect(lost.map(outageOf)).toEqual(lost.map(() => "unreachable"));
  expect([ofPrisma("P2024"), ofPrisma("P2028")].map(outageOf)).toEqual(["busy", "busy"]);
});

test("does not classify defects and rejected data as outages", () => {
  const others = [
    ofSqlite("SQLITE_ERROR"),
    ofSqlite("SQLITE_CORRUPT"),
    ofPostgresql("42601"),
    ofPrisma("P2002", ofSqlite("SQLITE_CONSTRAINT_UNIQUE")),
    ofKind({ kind: "TransactionWriteConflict" }),
    ofSystem("ENOENT", "open"),
    new TypeError("inside"),
    new Error("inside"),
    undefined,
  ];
  expect(others.map(outageOf)).toEqual(others.map(() => undefined));
});

test("the response has Retry-After and no internal details", () => {
  const answers = [
    ofSqlite("SQLITE_FULL"),
    ofPostgresql("57P01"),
    ofPrisma("P2028"),
    ofKind({ kind: "TransactionWriteConflict" }),
  ].map(answerTo);
  expect(answers.map((answer) => [answer?.status, answer?.headers])).toEqual([
    [503, { "Retry-After": "5" }],
    [503, { "Retry-After": "5" }],
    [503, { "Retry-After": "1" }],
    [503, { "Retry-After": "1" }],
  ]);
  expect(JSON.stringify(answers)).not.toContain("inside");
});
