import { execFile } from 'node:child_process'
import { dirname, join } from 'node:path'
import type { Test } from 'tap'

/** Runs commands in a home of their own, from which nothing but loopback can be reached. */
export function createHome(
  t: Test,
  env: Record<string, string>,
  folders: Parameters<Test['testdir']>[0] = { work: {}, elsewhere: {} },
) {
  const home = t.testdir(folders)
  const run = (command: string, given: string[], folder = 'work'): Promise<string> =>
    new Promise((resolve, reject) => {
      const options = {
        cwd: join(home, folder),
        env: {
          PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
          HOME: home,
          HTTPS_PROXY: 'http://127.0.0.1:9',
          NO_PROXY: '127.0.0.1,localhost',
          ...env,
        },
        timeout: 200_000,
      }
      const words = ['-u', 'NODE_OPTIONS', command, ...given]
      const child = execFile('env', words, options, (error, out, problems) =>
        error ? reject(new Error(`${error.message}\n${out}${problems}`)) : resolve(out + problems),
      )
      child.stdin!.end()
    })
  return { home, run }
}
