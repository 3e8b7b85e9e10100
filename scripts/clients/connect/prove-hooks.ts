import { randomUUID } from 'node:crypto'
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { vaultClient } from '#api/client/client.ts'
import { clients } from '#scripts/clients/connect/clients.ts'
import { nameRepository } from '#scripts/hooks/repository.ts'

type Proved = {
  client: string
  command: string
  baseUrl: string
  key: string
  env: Record<string, string | undefined>
}

/** Milliseconds in which an exchange is stored, and in which a hook answers. */
const [storedMs, answerMs] = [30_000, 15_000]

/**
 * Proves hooks by the command that the program will start: a turn is stored and recalled, in a repository of its own,
 * and then removed from the vault.
 *
 * @returns a sentence on it.
 * @throws Error with a sentence on what does not work
 */
export async function proveHooks({ client, command, baseUrl, key, env }: Proved): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'memory-vault-hooks-'))
  const vault = vaultClient(baseUrl, key)
  const metadata = { repository: nameRepository(folder) }
  const marker = randomUUID().slice(0, 8)
  // A turn of a session that was stored before is not stored again.
  const [first, second] = [randomUUID(), randomUUID()]
  const { prompt: promptEvent, ends } = clients[client]!.hooks!.events
  const run = (hook_event_name: string, session_id: string, fields: object): Promise<string> =>
    runShell(command, {
      folder,
      // What this does is not what the program has done, so it is kept apart.
      env: {
        ...env,
        XDG_STATE_HOME: folder,
        LOCALAPPDATA: folder,
        MEMORY_VAULT_HOOK_MS: String(answerMs),
      },
      input: JSON.stringify({ hook_event_name, session_id, cwd: folder, ...fields }),
    })
  const list = async (): Promise<string[]> => {
    const query = { limit: 10, metadata: JSON.stringify(metadata) }
    const { items } = await vault.call('GET /v1/memory/list', { query })
    return items.map(({ memory_id }) => memory_id)
  }
  let ids: string[] = []
  try {
    const prompt = `The heron of this connection is called ${marker}.`
    const answer = `I know the heron ${marker} now.`
    await run(promptEvent, first, { prompt })
    const transcript_path = join(folder, 'transcript.jsonl')
    const line = { type: 'assistant.message', data: { content: answer } }
    writeFileSync(transcript_path, JSON.stringify(line))
    const ended = { transcript_path, text: answer, last_assistant_message: answer }
    for (const event of ends) await run(event, first, ended)
    for (const end = Date.now() + storedMs; ids.length < 2; ids = await list()) {
      if (Date.now() > end) throw new Error(`The hook of ${client} ran and nothing was stored`)
      await delay(100)
    }
    const recalled = await run(promptEvent, second, {
      prompt: 'What is the heron of this connection called?',
    })
    if (!recalled.includes(marker)) {
      throw new Error(`The hook of ${client} recalled nothing: ${recalled.slice(0, 200)}`)
    }
    return `The hook of ${client} stored a turn and recalled it; both are removed again`
  } finally {
    if (ids.length > 0) await vault.call('POST /v1/memory/delete-ids', { body: { ids } })
    rmSync(folder, { recursive: true, force: true })
  }
}

type Start = { folder: string; env: Record<string, string | undefined>; input: string }

/** Starts a command by the shell, as programs start hooks. @returns its output. @throws Error where it fails */
const runShell = (command: string, { folder, env, input }: Start): Promise<string> =>
  new Promise((resolve, reject) => {
    const child = spawn(command, { cwd: folder, env, shell: true, stdio: 'pipe' })
    let [out, problems] = ['', '']
    child.stdout.on('data', chunk => (out += String(chunk)))
    child.stderr.on('data', chunk => (problems += String(chunk)))
    child.on('error', reject)
    child.on('close', code =>
      code === 0
        ? resolve(out)
        : reject(new Error(`${command} ended with ${code}: ${problems.slice(0, 300)}`)),
    )
    child.stdin.on('error', () => {})
    child.stdin.end(input)
  })
