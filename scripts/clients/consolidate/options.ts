import { exitWithUsage, parseOptions } from '#scripts/command-line.ts'
import {
  resolveConnection,
  userOptionHelp,
  type ServiceConnection,
} from '#scripts/service-connection.ts'
import type { ConsolidationPlan } from '#scripts/clients/consolidate/run.ts'
import { environmentReader, readProviders } from '#shared/core/read-providers.ts'
import { openChatModel, type ChatModel } from '#scripts/clients/consolidate/openai-chat.ts'

export type ConsolidateOptions = {
  connection: ServiceConnection
  model: ChatModel
  plan: ConsolidationPlan
  json: boolean
}

const help = `Usage: npm run consolidate -- --model <provider/model> [options]

Turns the memories of a vault into reflections: checks out a batch, has a language model write the
reflections, commits them, and repeats this until no batch is left.

  --model <name>       the language model, such as openai/gpt-5-mini or ollama/qwen3 (required);
                       its key is read from <PROVIDER>_API_KEY, its URL from <PROVIDER>_BASE_URL
  --tier <1|2|all>     1: raw memories into reflections; 2: reflections into high-level ones;
                       all: tier 1, then tier 2 (default: all)
  --max-tokens <n>     largest batch, for models with a short context (default: what the service
                       recommends: 50,000 for tier 1, 10,000 for tier 2)
  --max-batches <n>    stop after n batches (default: when no batch is left)
  --embeddings <name>  the vault space to consolidate (default: that of the service)
  --dry-run            print the reflections of one batch of each tier and commit nothing; the batch
                       is billed as read, and can be checked out again after at most 15 minutes
  --base-url <url>     the service (default: BASE_URL, or the one "npm start" runs on DATA_DIR)
  --key <key>          the Memory Key of the vault (default: MEMORY_KEY, or the first key of that one)
  ${userOptionHelp}
  --json               print the results as JSON
  --help               this text

Exit code: 0 when all is done, 1 when the service or the model failed, 2 for wrong options. It may be
stopped at any time and started again: committed reflections remain.
`

/** Reads the options from the arguments, the environment and the credentials of a running `npm start`. */
export function readOptions(): ConsolidateOptions {
  const values = parseOptions(help, {
    model: { type: 'string' },
    tier: { type: 'string', default: 'all' },
    'max-tokens': { type: 'string' },
    'max-batches': { type: 'string' },
    embeddings: { type: 'string' },
    'dry-run': { type: 'boolean', default: false },
    'base-url': { type: 'string' },
    key: { type: 'string' },
    user: { type: 'string' },
    json: { type: 'boolean', default: false },
  })
  const faults: string[] = []
  const tiers = parseTiers(values.tier)
  if (!tiers) faults.push('--tier must be 1, 2 or all')
  const maxTokens = parseWholeNumber('max-tokens', values['max-tokens'], faults)
  const batchesMax = parseWholeNumber('max-batches', values['max-batches'], faults)
  const connection = resolveConnection(values, { env: process.env, faults })
  const model = openModel(values.model, faults)
  if (!model || !tiers || faults.length > 0) exitWithUsage(faults, help)
  const { embeddings, json, 'dry-run': dryRun } = values
  const checkout = {
    ...(maxTokens !== undefined && { max_tokens: maxTokens }),
    ...(embeddings !== undefined && { embeddings }),
  }
  return { connection, model, json, plan: { tiers, batchesMax, dryRun, checkout } }
}

function parseTiers(tier: string): ConsolidationPlan['tiers'] | undefined {
  if (tier === 'all') return [1, 2]
  return tier === '1' ? [1] : tier === '2' ? [2] : undefined
}

function parseWholeNumber(
  name: string,
  text: string | undefined,
  faults: string[],
): number | undefined {
  if (text === undefined) return undefined
  const value = Number(text)
  if (Number.isSafeInteger(value) && value > 0) return value
  faults.push(`--${name} must be a whole number from 1`)
  return undefined
}

function openModel(name: string | undefined, faults: string[]): ChatModel | undefined {
  if (!name) {
    faults.push('--model is missing: the language model that writes the reflections')
    return undefined
  }
  try {
    return openChatModel(name, readProviders(environmentReader(process.env, faults), faults))
  } catch (error) {
    const { message, hint } = error as Error & { hint?: string }
    faults.push(`--model: ${message}${hint ? ` (${hint})` : ''}`)
    return undefined
  }
}
