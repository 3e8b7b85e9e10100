import { spawn } from 'node:child_process'
import { compileCache } from '#test/support/start/compile-cache.ts'

type ScriptEnd = { code: number | null; out: string; err: string }

/** Runs a script of this project to its end, with an environment of its own. */
export function runScript(
  script: string,
  args: readonly string[],
  env: Record<string, string>,
): Promise<ScriptEnd> {
  const child = spawn(process.execPath, [script, ...args], {
    env: { PATH: process.env['PATH']!, ...compileCache, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let [out, err] = ['', '']
  child.stdout.setEncoding('utf8').on('data', text => (out += text))
  child.stderr.setEncoding('utf8').on('data', text => (err += text))
  return new Promise(resolve => child.once('close', code => resolve({ code, out, err })))
}
