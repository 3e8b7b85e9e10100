import { fork, type ChildProcess } from 'node:child_process'
import { request, Agent } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { workerNodeOptions } from '#scripts/worker-options.ts'
import type { ReadyMessage } from '#shared/core/process-lifecycle.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))

export type RunningProcess = { child: ChildProcess; port: number; stop(): Promise<void> }

/**
 * Starts a process of the service and waits until it is ready.
 *
 * @param folder of the checkout whose program it is; this one without it.
 */
export async function startProcess(
  program: string,
  env: Record<string, string>,
  args: string[] = [],
  execArgv: string[] = [],
  folder = root,
): Promise<RunningProcess> {
  const ownOptions = program === 'workers/index.ts' ? workerNodeOptions : []
  const options = { cwd: folder, env, execArgv: [...ownOptions, ...execArgv] }
  const child = fork(join(folder, program), args, options)
  const { port = 0 } = await new Promise<ReadyMessage>((resolve, reject) => {
    child.once('message', message => resolve(message as ReadyMessage))
    child.once('exit', code => reject(new Error(`${program} ended with ${code}`)))
  })
  const stop = async (): Promise<void> => {
    const ended = new Promise(resolve => child.once('exit', resolve))
    child.kill('SIGTERM')
    await ended
  }
  return { child, port, stop }
}

export type Poster = (body: string) => Promise<{ status: number; text: string }>

/**
 * A function that posts JSON to `path` over keep-alive connections and resolves to the answer.
 *
 * @param agent whose connections are used; without it 256 at most of its own.
 */
export function createPoster(
  port: number,
  path: string,
  key: string,
  agent: Agent = new Agent({ keepAlive: true, maxSockets: 256 }),
): Poster {
  return body =>
    new Promise((resolve, reject) => {
      const sent = request(
        {
          agent,
          port,
          path,
          host: '127.0.0.1',
          method: 'POST',
          headers: {
            authorization: `Bearer ${key}`,
            'content-type': 'application/json',
            'content-length': Buffer.byteLength(body),
          },
        },
        answer => {
          let text = ''
          answer.setEncoding('utf8')
          answer.on('data', chunk => (text += chunk))
          answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text }))
        },
      )
      sent.on('error', reject)
      sent.end(body)
    })
}

/**
 * Posts a search again while it is answered 503: without `$vectorSearch` the first search of a vault waits
 * until all of it was loaded, 50 s at most.
 *
 * @throws Error any other answer than 200.
 */
export async function postUntilLoaded(post: Poster, body: string): Promise<void> {
  for (;;) {
    const { status, text } = await post(body)
    if (status === 200) return
    if (status !== 503) throw new Error(`${status} ${text}`)
  }
}
