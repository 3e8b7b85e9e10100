import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { startJobWorkers } from '#test/support/start/api.ts'
import { readDocuments } from '#test/support/start/insert-memories.ts'
import { providerKey } from '#test/support/doubles/model-provider.ts'
import { startProxyFixture } from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { waitUntilIdle } from '#test/support/checks/observe-jobs.ts'
import {
  commonBytes,
  startProgramGate,
  withoutBlocks,
  type ProgramCall,
} from '#test/support/samples/program-calls.ts'
import { finalAnswer, respondToProgram, shellIn } from '#test/support/doubles/program-double.ts'
import { createHome } from '#test/support/start/program-home.ts'

/**
 * The programs of people, wired by `npm run connect`, each with a home of its own. A session of two turns, in
 * each of which the model uses the program's shell, is run directly and through the service: the program gets
 * the same answers, the provider the same bytes but for blocks, and no request loses the prefix that the one
 * before it has warmed. A second session is told what the first one said, and what is stored is what people
 * and the model have said. The programs are looked for in the folder AGENT_PROGRAMS, such as
 * `node_modules/.bin` after `npm install @openai/codex @google/gemini-cli opencode-ai`.
 */

const programs = process.env.AGENT_PROGRAMS
const connect = fileURLToPath(new URL('../../scripts/clients/connect.ts', import.meta.url))

type Program = {
  client: string
  begin(said: string): string[]
  goOn(said: string): string[]
  env: Record<string, string>
}

const codexFlags = ['--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox']
const openai = { OPENAI_API_KEY: providerKey('openai') }
const table: Program[] = [
  {
    client: 'codex',
    begin: said => ['exec', ...codexFlags, said],
    goOn: said => ['exec', 'resume', '--last', ...codexFlags, said],
    env: openai,
  },
  {
    client: 'opencode',
    begin: said => ['run', '--auto', '-m', 'openai/gpt-5', said],
    goOn: said => ['run', '--auto', '-c', '-m', 'openai/gpt-5', said],
    env: openai,
  },
  {
    client: 'gemini',
    begin: said => ['--yolo', '--skip-trust', '-p', said],
    goOn: said => ['--yolo', '--skip-trust', '--resume', 'latest', '-p', said],
    env: { GEMINI_API_KEY: providerKey('google') },
  },
]
const installed = table.filter(({ client }) => programs && existsSync(join(programs, client)))

const first = 'Remember for later: our staging database is called heron-42.'
const later = 'And which port does it listen on?'
const second = 'What is our staging database called?'

const isConversation = ({ sent }: ProgramCall): boolean =>
  shellIn(sent.body.toString()) !== undefined

/** What the provider got is what the program sent, with blocks where it is told something. */
function assertBytes(t: Test, calls: readonly ProgramCall[]): void {
  for (const { sent, got } of calls) {
    if (!got) {
      t.fail(`the provider got nothing of ${sent.url}`)
    } else if (got.body.includes('<memory_context>')) {
      const [one, other] = [sent, got].map(({ body }) => JSON.parse(body.toString()) as unknown)
      t.same(withoutBlocks(other), one, 'all but the blocks')
    } else t.ok(got.body.equals(sent.body), 'byte for byte')
  }
}

/** Each request of the conversation shares with the one before at least what the program's own do. */
function assertPrefix(t: Test, calls: readonly ProgramCall[]): void {
  const conversation = calls.filter(isConversation)
  for (const [index, after] of conversation.slice(1).entries()) {
    const before = conversation[index]!
    const own = commonBytes(before.sent.body, after.sent.body)
    const proxied = commonBytes(before.got!.body, after.got!.body)
    t.ok(proxied >= own, `request ${index + 2}: ${proxied} of ${own} bytes can be reused`)
  }
}

if (installed.length === 0) {
  t.pass('skipped: AGENT_PROGRAMS names no folder with codex, opencode or gemini')
} else {
  const world = await startProxyFixture(t)
  const { backend, provider } = world
  await startJobWorkers(backend)
  provider.respondAlways(respondToProgram)

  for (const { client, begin, goOn, env } of installed) {
    const program = join(programs!, client)

    /** Two turns of a session; what the program printed for each, and the calls it made. */
    const runSession = async (t: Test, key: string, isDirect: boolean) => {
      const gate = await startProgramGate(t, world)
      const { run } = createHome(t, { BASE_URL: gate.origin, MEMORY_KEY: key, ...env })
      await run(process.execPath, [connect, client, '--yes'])
      if (isDirect) gate.goDirect()
      gate.takeCalls()
      const printed = [await run(program, begin(first))]
      await waitUntilIdle(backend)
      printed.push(await run(program, goOn(later)))
      await waitUntilIdle(backend)
      return { printed, calls: gate.takeCalls(), run, gate }
    }

    t.test(client, async t => {
      const direct = await runSession(t, await world.newKey(), true)
      const key = await world.newKey()
      const { printed, calls, run, gate } = await runSession(t, key, false)
      for (const [index, text] of printed.entries()) {
        t.match(text, finalAnswer(index + 1), `turn ${index + 1} ends with the final answer`)
        t.match(direct.printed[index], finalAnswer(index + 1), 'as it does directly')
      }
      t.equal(
        calls.filter(isConversation).length,
        direct.calls.filter(isConversation).length,
        'with as many calls',
      )
      t.equal(calls.filter(isConversation).length, 4, 'one step with its shell for each turn')
      assertBytes(t, calls)
      assertPrefix(t, calls)
      const said = (await readDocuments(backend, key)).map(({ role, text }) => `${role}: ${text}`)
      const answers = [1, 2].map(results => `assistant: ${finalAnswer(results)}`)
      t.same(
        said.toSorted(),
        [`user: ${first}`, `user: ${later}`, ...answers].toSorted(),
        'stored: what a person said and the final answers, once each',
      )

      await run(program, begin(second), 'elsewhere')
      await waitUntilIdle(backend)
      const told = gate.takeCalls()
      assertBytes(t, told)
      assertPrefix(t, told)
      const conversation = told.filter(isConversation)
      t.ok(conversation.length > 0)
      for (const { got } of conversation) {
        t.match(got!.body.toString(), /memory_context[^]*heron-42/, 'a second session is told')
      }
      t.ok(
        client === 'codex' || conversation.some(({ sent }) => sent.body.includes('date_search')),
        'with the tools of the vault',
      )
    })
  }
}
