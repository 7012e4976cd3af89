#!/usr/bin/env node
const { startProgram } = require("@gatehouse-access/sdk/startProgram.cjs");
const { engines } = require("../package.json");

startProgram("pulumi-resource-gatehouse", engines.node, require.resolve("../dist/providers/plugin/start.js"));
