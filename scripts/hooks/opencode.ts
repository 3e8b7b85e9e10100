import { spawn } from 'node:child_process'

/**
 * A plug-in of opencode, which has no hooks that are programs: it starts one as the others do. One default export is
 * loaded by both versions: version 1 calls `server` (opencode.ai/v1/docs/plugins), version 2 calls `setup`
 * (opencode.ai/docs/build/plugins); version 1 calls that too, with a context that has no events.
 *
 * @param command the program that answers hooks, with its arguments
 */
export const memoryVault = (command: readonly string[]) => ({
  id: 'memory-vault',
  server: (input: PluginInput) => Promise.resolve(hooksOfVersion1(command, input)),
  setup: (context: Context) => setUpVersion2(command, context),
})

type Text = { type: string; text?: string; synthetic?: boolean; id?: string }
type SessionRow = { parentID?: string; location?: { directory?: string } }

type PluginInput = {
  directory: string
  client: {
    session: {
      get(call: { path: { id: string } }): Promise<{ data?: SessionRow }>
      messages(call: {
        path: { id: string }
      }): Promise<{ data?: { info: { id: string; role: string }; parts: Text[] }[] }>
    }
  }
}

/** The fields of a hook's input that the program reads. */
type HookInput = {
  hook_event_name: 'SessionStart' | 'UserPromptSubmit' | 'Stop'
  session_id: string
  cwd: string
  turn_id?: string
  prompt?: string
  last_assistant_message?: string
}

/** @returns the context for the model; undefined also where the program fails. */
const runHook = ([program, ...args]: readonly string[], input: HookInput) =>
  new Promise<string | undefined>(resolve => {
    const child = spawn(program!, args, { stdio: ['pipe', 'pipe', 'ignore'], windowsHide: true })
    let answer = ''
    child.on('error', () => resolve(undefined))
    child.stdin.on('error', () => {})
    child.stdout.on('data', chunk => (answer += String(chunk)))
    child.on('close', () => resolve(readContext(answer)))
    child.stdin.end(JSON.stringify(input))
  })

function readContext(answer: string): string | undefined {
  try {
    const { hookSpecificOutput } = JSON.parse(answer) as {
      hookSpecificOutput?: { additionalContext?: string }
    }
    return hookSpecificOutput?.additionalContext
  } catch {
    return undefined
  }
}

const textOf = (parts: readonly Text[]): string =>
  parts
    .filter(({ type, synthetic }) => type === 'text' && synthetic !== true)
    .map(({ text = '' }) => text)
    .join('\n')
    .trim()

/** What both versions do: the person's block at the first prompt of a session, and one for each prompt. */
function createTurns(command: readonly string[]) {
  const begun = new Set<string>()
  return {
    async recall(session_id: string, cwd: string, prompt: string): Promise<string[]> {
      const isFirst = !begun.has(session_id)
      begun.add(session_id)
      const input = { session_id, cwd }
      const blocks = await Promise.all([
        isFirst && runHook(command, { ...input, hook_event_name: 'SessionStart' }),
        runHook(command, { ...input, hook_event_name: 'UserPromptSubmit', prompt }),
      ])
      return blocks.filter(block => typeof block === 'string')
    },
    store: (session_id: string, cwd: string, last_assistant_message: string) =>
      runHook(command, { session_id, cwd, hook_event_name: 'Stop', last_assistant_message }),
  }
}

function hooksOfVersion1(command: readonly string[], { client, directory }: PluginInput) {
  const { recall, store } = createTurns(command)
  const isOfPerson = async (id: string): Promise<boolean> => {
    const { data } = await client.session.get({ path: { id } })
    return data?.parentID === undefined
  }
  return {
    'chat.message': async (
      { sessionID }: { sessionID: string },
      { message, parts }: { message: { id: string }; parts: Text[] },
    ): Promise<void> => {
      const prompt = textOf(parts)
      if (prompt === '' || !(await isOfPerson(sessionID))) return
      for (const [index, text] of (await recall(sessionID, directory, prompt)).entries()) {
        // Parts are sorted by their ids.
        const id = `${parts[0]?.id ?? 'prt_'}memory${index}`
        const own = { id, sessionID, messageID: message.id, type: 'text', synthetic: true }
        parts.push({ ...own, text })
      }
    },
    event: async ({ event }: { event: { type: string; properties?: { sessionID?: string } } }) => {
      const id = event.properties?.sessionID
      if (event.type !== 'session.idle' || id === undefined || !(await isOfPerson(id))) return
      const { data = [] } = await client.session.messages({ path: { id } })
      const last = data.at(-1)
      if (last?.info.role === 'assistant') await store(id, directory, textOf(last.parts))
    },
  }
}

type ModelMessage = { role: string; content: Text[] }
type Context = {
  location?: { directory?: string }
  session?: {
    hook?(
      name: 'context',
      change: (event: { sessionID: string; messages: ModelMessage[] }) => Promise<void>,
    ): Promise<unknown>
    get(call: { sessionID: string }): Promise<SessionRow & { data?: SessionRow }>
  }
  event?: {
    subscribe(): AsyncIterable<{ type: string; data?: { sessionID?: string; text?: string } }>
  }
}

/**
 * The hook `context` runs before each call of a model, and what it adds is not kept: the blocks of a prompt are
 * added again each time, so that the calls of a turn begin alike.
 */
async function setUpVersion2(command: readonly string[], { session, event, location }: Context) {
  if (!session?.hook || !event) return
  const { recall, store } = createTurns(command)
  const folders = new Map<string, Promise<string | undefined>>()
  const blocks = new Map<string, Promise<string[]>>()
  const answers = new Map<string, string>()

  /** The folder of a session of a person; undefined for one of a subagent. */
  const folderOf = (sessionID: string): Promise<string | undefined> => {
    const found =
      folders.get(sessionID) ??
      session.get({ sessionID }).then(({ data, ...row }) => {
        const { parentID, location: own } = data ?? row
        return parentID ? undefined : (own?.directory ?? location?.directory ?? process.cwd())
      })
    folders.set(sessionID, found)
    return found
  }
  await session.hook('context', async ({ sessionID, messages }) => {
    const folder = await folderOf(sessionID)
    if (folder === undefined) return
    const said = messages.filter(({ role, content }) => role === 'user' && textOf(content) !== '')
    for (const [index, { content }] of said.entries()) {
      const key = JSON.stringify([sessionID, index, textOf(content)])
      const isLast = index === said.length - 1
      const found =
        blocks.get(key) ?? (isLast ? recall(sessionID, folder, textOf(content)) : undefined)
      if (!found) continue
      blocks.set(key, found)
      for (const text of await found) content.push({ type: 'text', text })
    }
  })
  void (async () => {
    for await (const { type, data: { sessionID, text = '' } = {} } of event.subscribe()) {
      if (sessionID === undefined) continue
      if (type === 'session.text.ended' && text !== '') answers.set(sessionID, text)
      if (type !== 'session.execution.succeeded') continue
      const folder = await folderOf(sessionID)
      const answer = answers.get(sessionID)
      answers.delete(sessionID)
      if (folder !== undefined && answer !== undefined) await store(sessionID, folder, answer)
    }
  })().catch(() => {})
}
