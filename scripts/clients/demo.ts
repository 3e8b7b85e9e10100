import { isHttpUrl, type ServiceConnection } from '#scripts/service-connection.ts'
import { exitWithUsage, parseCommand } from '#scripts/command-line.ts'
import { questions, readConversation } from '#scripts/clients/demo/conversation.ts'
import { openTerminal, silentTerminal, StoryPage } from '#scripts/clients/demo/page.ts'
import { openService, type TimedCall } from '#scripts/clients/demo/service.ts'
import {
  askQuestion,
  median,
  nextUserTurn,
  prepareQuestion,
  storeSitting,
  unanswerableQuestion,
  waitUntilStored,
  type AnsweredQuestion,
  type StoredSitting,
  type StoryResult,
} from '#scripts/clients/demo/story.ts'
import { describeTeam, makeDemoTeam } from '#scripts/clients/demo/team.ts'
import { makeLoginLink } from '#scripts/login-link.ts'
import { Refusal } from '#shared/core/errors.ts'

const help = `Usage: npm run demo -- [options]
       npm run demo -- team [name]

Stores a conversation of eight months in the service (POST /v1/memory/ingest, with the time of each
turn), then searches it with questions and shows what was found and why.

It uses the service you name, or the one that "npm start" is running on DATA_DIR, and creates a key with
a separate vault there (POST /v1/keys), so your vault does not change. When no service runs, it starts
one in a temporary folder and removes it at the end.

With "team" it makes a team in the service that runs here: tags, roles, members with their keys, shared facts
and a review queue, to work on the console with. Its name is "Demo team" and the time, or the one that you give.

  --base-url <url>  a running service (default: BASE_URL)
  --key <key>       a Memory Key that may create keys (default: MEMORY_KEY)
  --json            print the results as JSON
  --help            this text

Exit code: 0 when every question was answered as expected, 1 when one was not or the service could not
be used, 2 for wrong options.
`

const abortController = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.on(signal, () => abortController.abort())
// The reader of the output may close it early, as `head` does; the service still has to be stopped.
process.stdout.on('error', () => abortController.abort())

process.exitCode = await main()

async function main(): Promise<number> {
  try {
    const { team, ...options } = readOptions()
    if (team !== undefined) {
      process.stdout.write(describeTeam(await makeDemoTeam(team)))
      return 0
    }
    const { failed } = await runDemo(options)
    return failed.length > 0 ? 1 : 0
  } catch (error) {
    if (abortController.signal.aborted) return 130
    if (!(error instanceof Refusal)) throw error
    process.stderr.write(`${error.message}\n${error.hint ? `${error.hint}\n` : ''}`)
    return 1
  }
}

type DemoOptions = { json: boolean; connection: ServiceConnection | undefined }

function readOptions(): DemoOptions & { team?: string } {
  const { values, positionals } = parseCommand(help, {
    'base-url': { type: 'string' },
    key: { type: 'string' },
    json: { type: 'boolean', default: false },
  })
  const [story, name, ...others] = positionals
  if ((story !== undefined && story !== 'team') || others.length > 0) {
    exitWithUsage(['The only story with a name is "team", with one name of the team'], help)
  }
  if (story === 'team') {
    const team = name ?? `Demo team ${new Date().toISOString().slice(0, 19)}`
    return { json: false, connection: undefined, team }
  }
  const { BASE_URL, MEMORY_KEY } = process.env
  const baseUrl = (values['base-url'] ?? BASE_URL ?? '').trim().replace(/\/+$/, '')
  const key = (values.key ?? MEMORY_KEY ?? '').trim()
  if (!baseUrl && !key) return { json: values.json, connection: undefined }
  if (!isHttpUrl(baseUrl)) {
    exitWithUsage(['A key needs the http(s) address of its service: --base-url or BASE_URL'], help)
  }
  if (!key) exitWithUsage(['A service needs a Memory Key: --key or MEMORY_KEY'], help)
  return { json: values.json, connection: { baseUrl, key } }
}

async function runDemo({ json, connection }: DemoOptions): Promise<StoryResult> {
  const now = new Date()
  const { signal } = abortController
  const page = new StoryPage(json ? silentTerminal : openTerminal(process.stdout))
  page.writeIntroduction()
  const service = await openService(connection, { signal, starting: () => page.writeStarting() })
  try {
    page.writeReady(service)
    const story = await runStory(service.call, now, page)
    page.writeSummary(story, service, await makeLoginLink(service))
    if (json) {
      const { baseUrl, kind, readyMs } = service
      const report = { service: { baseUrl, kind, readyMs }, ...story }
      process.stdout.write(`${JSON.stringify(report, null, 2)}\n`)
    }
    return story
  } finally {
    await service.stop()
  }
}

/** Stores the conversation in an empty vault, sitting by sitting, then searches it with the questions. */
async function runStory(call: TimedCall, now: Date, page: StoryPage): Promise<StoryResult> {
  const conversation = readConversation(now)
  const told: StoredSitting[] = []
  for (const sitting of conversation.sittings) {
    told.push(await storeSitting(call, sitting))
    page.writeSitting(told.at(-1)!)
  }
  await waitUntilStored(call, told)
  const { answer, ms } = await call('POST /v1/memory/warmup')
  const warmup = { memories: answer.memories_loaded, ms }
  page.writeWarmup(warmup)

  const asked: AnsweredQuestion[] = []
  for (const question of questions) {
    asked.push(await askQuestion(call, question, { conversation, now }))
    page.writeQuestion(asked.at(-1)!, { number: asked.length, now: now.getTime() })
  }
  const unanswerable = await prepareQuestion(call, unanswerableQuestion)
  page.writeUnanswerable(unanswerable)
  const prepared = await prepareQuestion(call, nextUserTurn)
  page.writePrepared(prepared)

  const { answer: stats } = await call('GET /v1/memory/stats')
  const { memories, total_tokens: tokens, oldest, newest } = stats
  const failed = [
    ...asked.flatMap(({ question, fault }) => (fault ? [`${question} ${fault}`] : [])),
    unanswerable.context !== null && `${unanswerableQuestion} something unrelated was recalled`,
    prepared.context === null && `${nextUserTurn} nothing was recalled`,
  ].filter(line => line !== false)
  return {
    told,
    warmup,
    asked,
    unanswerable,
    prepared,
    stats: { memories, tokens, oldest, newest },
    medianSearchMs: median(asked.map(({ ms }) => ms)),
    failed,
  }
}
