import { localEmbedder } from '#shared/models/local-embedder.ts'
import { parseCommand, exitWithUsage } from '#scripts/command-line.ts'
import { blockShare, unhelpedKinds } from '#scripts/lab/bench/harm/figures.ts'
import { measureHalf } from '#scripts/lab/bench/harm/measure.ts'
import { wrappings } from '#scripts/lab/bench/harm/wrappings.ts'
import { measureVault, type QuestionResult } from '#scripts/lab/scores/measure.ts'
import { measurePrecision } from '#scripts/lab/scores/precision.ts'
import { setReaders } from '#scripts/lab/scores/sets.ts'
import { precisionTable, scoresTable, toTable } from '#scripts/lab/scores/table.ts'
import { resolveConnection } from '#scripts/service-connection.ts'

const help = `Usage: npm run lab -- scores <set> <path> [--vaults <number>]

Measures retrieval on a public set and prints the tables in Markdown: R@5, R@10 and NDCG@10 by lines and by
sessions, at least one among five (any@5), the median of a search's time and of a block's tokens. Beside it what
memory does to messages that it cannot help, measured in this process on the project's own set.

  locomo <file>         data/locomo10.json of github.com/snap-research/locomo, categories 1 to 4
  longmemeval <file>    longmemeval_s_cleaned.json of huggingface.co/datasets/xiaowu0162/longmemeval-cleaned
  beam <folder>         chats/100K (500K, 1M) of github.com/mohammadtavakoli78/BEAM
  consolidation <file>  MemoryAgentBench/data/Conflict_Resolution.json of github.com/DSAIL-Memory/EvoMemBench
  vehicle <folder>      benchmark of github.com/isyuhaochen/VehicleMemBench
  realtalk <folder>     data of github.com/danny911kr/REALTALK
  precision <folder>    github.com/tenurehq/precisionMemBench

Each conversation is stored in a vault of its own of the account, and removed. The service is the one that runs here,
or that of --base-url and --key (BASE_URL, MEMORY_KEY); a key that was made with the account, with a card on file.

  --vaults <number>     the first conversations alone
  --no-harm             without the second table
  --base-url, --key     another service
  --help                this text
`

const { values, positionals } = parseCommand(help, {
  vaults: { type: 'string' },
  'no-harm': { type: 'boolean' },
  'base-url': { type: 'string' },
  key: { type: 'string' },
})
const faults: string[] = []
const [set = '', path] = positionals
if (set !== 'precision' && !(set in setReaders)) faults.push(`No such set: ${set}`)
if (path === undefined) faults.push('Name the file or folder of the set')
const vaultsMax = Number(values.vaults ?? Infinity)
if (!(vaultsMax > 0)) faults.push('--vaults is a number from 1 on')
const connection = resolveConnection(values, { env: process.env, faults })
if (faults.length > 0) exitWithUsage(faults, help)

if (set === 'precision') {
  console.log(precisionTable(await measurePrecision(connection, path!)))
} else {
  const answered: QuestionResult[] = []
  let vaults = 0
  for (const vault of setReaders[set]!(path!)) {
    if (vaults === vaultsMax) break
    answered.push(...(await measureVault(connection, vault)))
    process.stderr.write(`${++vaults} vaults, ${answered.length} questions\r`)
  }
  process.stderr.write('\n')
  console.log(scoresTable(set, answered))
}
if (!values['no-harm']) {
  const outcomes = await measureHalf('heldout', localEmbedder(), wrappings.slice(0, 1))
  const kinds = ['answerable', ...unhelpedKinds] as const
  const cells = kinds.map(kind => (blockShare(outcomes, kind, 'bare') * 100).toFixed(1))
  console.log(`\n${toTable(['% with a block', ...kinds], [['heldout, bare', ...cells]])}`)
}
