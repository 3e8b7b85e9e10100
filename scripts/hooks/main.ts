#!/usr/bin/env node
// A package of its own, for Node 20.18.3 and later: it imports nothing but Node, this folder and the table of marks.
import { feedbacks, giveFeedback } from './feedback.ts'
import { record } from './journal.ts'
import { deadlineMs } from './recall.ts'
import { allowRepository } from './repository-claims.ts'
import { runHook } from './run.ts'
import { sendWaiting } from './spool.ts'
import { describeStatus } from './status.ts'
import { sweepSessions } from './turn-state.ts'

const usage = `Usage: memory-vault-hooks <command>

Recalls from a vault and stores in it for agents that run hooks, from their JSON at standard input.

  run <client>   answers a hook of claude-code, codex, gemini, qwen, cursor, vscode or opencode
  status         what hooks have recalled and stored, what waits and why, and what the vault has of each program
  send           sends what waits, as every end of a turn does
  allow <folder> lets a clone use the memory of the repository that it says it is; its name lets every folder
  feedback <wrong, outdated, not_mine or right> <id or words of one memory>
                 what is wrong, outdated or not yours is told no more, and kept; right tells it again
  --help         this text

The service and key of a program stand in memory-vault/hooks/<client>.json of your configuration folder:
{"base_url": "http://127.0.0.1:3000", "key": "mk_…"}, readable by you alone. The service has a second
for its answer, or MEMORY_VAULT_HOOK_MS.
`

/** A hook ends in any case soon after its deadline: a prompt waits for it. The start of Node is not counted. */
const lifeMs = deadlineMs + 2000

async function main([command, client = '', ...others]: string[]): Promise<number> {
  if (command === 'run' && client !== '') {
    const end = setTimeout(() => {
      record({ client, what: 'without memory', error: `the hook took more than ${lifeMs} ms` })
      process.exit(0)
    }, lifeMs)
    const answer = await runHook(client, await readInput())
    clearTimeout(end)
    await new Promise<void>(resolve => process.stdout.write(answer, () => resolve()))
    // Connections that are kept open would hold the process.
    process.exit(0)
  }
  if (command === 'status') process.stdout.write(await describeStatus())
  else if (command === 'send') {
    sweepSessions()
    await sendWaiting()
  } else if (command === 'allow' && client !== '') process.stdout.write(allowRepository(client))
  else if (command === 'feedback' && feedbacks.includes(client) && others.length > 0)
    process.stdout.write(await giveFeedback(client, others.join(' ')))
  else if (command === '--help') process.stdout.write(usage)
  else {
    process.stderr.write(`${usage.split('\n', 1)[0]}\nSee --help.\n`)
    return 2
  }
  return 0
}

async function readInput(): Promise<string> {
  const chunks: Uint8Array[] = []
  for await (const chunk of process.stdin) chunks.push(chunk as Uint8Array)
  return Buffer.concat(chunks).toString('utf8')
}

process.exitCode = await main(process.argv.slice(2))
