import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { installNode } from '#test/programs/install.ts'
import { nodePrograms } from '#test/programs/node-programs.ts'
import { runProgram, startProgramWorld } from '#test/programs/run-program.ts'
import { noteSeen } from '#test/programs/seen.ts'
import { installPackage } from '#test/support/start/installed-package.ts'

/**
 * The adapters of the client for TypeScript in their libraries, in the versions that the guide names. `PROGRAM` names
 * one of the files.
 */

const only = process.env.PROGRAM
t.setTimeout(1_500_000)
const root = fileURLToPath(new URL('../..', import.meta.url))
const { environment } = await startProgramWorld(t)

for (const { name, files, versions } of nodePrograms) {
  const file = files[0]!
  if (only && !file.includes(only)) continue
  for (const pins of versions) {
    await t.test(`${name}, ${pins[0]}`, { timeout: 900_000 }, async t => {
      const installed = await installNode(pins)
      if ('missing' in installed) return t.pass(installed.missing, { skip: installed.missing })
      const { folder } = installed
      await (file.endsWith('.mjs') ? runOwn(t, folder, file, pins) : runTests(t, folder, files))
      if (t.passing()) noteSeen(pins[0]!)
    })
  }
}

/** A program of this folder, beside the libraries and the packed client, so that Node finds both. */
async function runOwn(t: Test, folder: string, file: string, pins: readonly string[]) {
  const cwd = mkdtempSync(join(folder, 'run-'))
  t.teardown(() => rmSync(cwd, { recursive: true }))
  cpSync(join(import.meta.dirname, 'node'), cwd, { recursive: true })
  await installPackage('api/client', join(cwd, 'node_modules'))
  const major = /@(\d+)[^@]*$/.exec(pins[0]!)![1]!
  const env = { ...environment, RUN: `${crypto.randomUUID()}-`, MAJOR: major, HOME: cwd }
  for (const step of ['first', 'again']) {
    await runProgram(t, process.execPath, [file, step], { cwd, env })
  }
}

/** Test files that run with a library where `CLIENT_MODULES` has it, in a run of their own. */
async function runTests(t: Test, folder: string, files: readonly string[]) {
  const args = ['test/setup/run.ts', '--processes', '1', ...files]
  const { NODE_OPTIONS: _, ...env } = process.env
  const ran = await promisify(execFile)(process.execPath, args, {
    cwd: root,
    env: { ...env, CLIENT_MODULES: folder },
    maxBuffer: 2 ** 26,
  }).catch((error: unknown) => error as { stdout: string })
  t.match(ran.stdout, /^\d+ passed, 0 failed, 0 skipped$/m, ran.stdout.slice(-3000))
}
