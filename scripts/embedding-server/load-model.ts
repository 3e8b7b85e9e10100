import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join, resolve } from 'node:path'
import { Refusal } from '#shared/core/errors.ts'

/** A model of the disk, loaded. */
export type LoadedModel = {
  /** The name of its folder. */
  name: string
  /** Tokens of the longest text that it reads whole. */
  tokensMax: number
  countTokens(text: string): number
  /** The vector of a text, of unit length. */
  embed(text: string): Promise<Float32Array>
}

/** What is used of the package, by its pages: https://huggingface.co/docs/transformers.js/api/pipelines */
type Transformers = {
  env: { allowRemoteModels: boolean; localModelPath: string; useFSCache: boolean }
  pipeline(task: 'feature-extraction', model: string, options: Precision): Promise<Extractor>
}
type Precision = { dtype: 'fp32' | 'q8' }
type Extractor = {
  (texts: string[], options: { pooling: string; normalize: true }): Promise<Vectors>
  tokenizer: { encode(text: string): ArrayLike<number>; model_max_length?: number }
}
type Vectors = { data: ArrayLike<number> }

const packageName = '@huggingface/transformers'

/**
 * Loads an ONNX export in the layout of the Hugging Face hub, with the package of the folder's surroundings or of
 * this project. Nothing is fetched.
 *
 * @throws Refusal `invalid` naming what is missing.
 */
export async function loadModel(path: string): Promise<LoadedModel> {
  const folder = resolve(path)
  const precision = findPrecision(folder)
  const transformers = requireTransformers(folder)
  Object.assign(transformers.env, {
    allowRemoteModels: false,
    useFSCache: false,
    localModelPath: `${dirname(folder)}/`,
  })
  const name = basename(folder)
  const extract = await transformers.pipeline('feature-extraction', name, precision)
  const { tokenizer } = extract
  const pooling = readPooling(folder)
  return {
    name,
    tokensMax: readTokensMax(folder, tokenizer.model_max_length),
    countTokens: text => tokenizer.encode(text).length,
    embed: async text =>
      Float32Array.from((await extract([text], { pooling, normalize: true })).data),
  }
}

/** The files that the package loads for each precision. */
const weightFiles: [file: string, precision: Precision][] = [
  ['onnx/model.onnx', { dtype: 'fp32' }],
  ['onnx/model_quantized.onnx', { dtype: 'q8' }],
]

function findPrecision(folder: string): Precision {
  const missing = ['config.json', 'tokenizer.json'].filter(file => !existsSync(join(folder, file)))
  const weights = weightFiles.find(([file]) => existsSync(join(folder, file)))
  if (weights && missing.length === 0) return weights[1]
  if (!weights) missing.push(weightFiles.map(([file]) => file).join(' or '))
  throw new Refusal(
    'invalid',
    `${folder} has no ${missing.join(', no ')}`,
    'Name the folder of an ONNX export, with the files as they are on the Hugging Face hub',
  )
}

function requireTransformers(folder: string): Transformers {
  for (const from of [`${folder}/`, import.meta.url]) {
    const require = createRequire(from)
    let file
    try {
      file = require.resolve(packageName)
    } catch {
      continue
    }
    return require(file) as Transformers
  }
  throw new Refusal(
    'invalid',
    `${packageName} is not installed`,
    `Run "npm install ${packageName}" in the folder that holds ${folder}`,
  )
}

const readJson = (folder: string, file: string): Record<string, unknown> => {
  const path = join(folder, file)
  return existsSync(path) ? (JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>) : {}
}

/** As sentence-transformers writes it into the folder of a model; most models without it take the mean. */
function readPooling(folder: string): string {
  const modes = readJson(folder, '1_Pooling/config.json')
  if (modes['pooling_mode_cls_token'] === true) return 'cls'
  return modes['pooling_mode_lasttoken'] === true ? 'last_token' : 'mean'
}

const usualTokensMax = 512

/** Some tokenizers name a length that no model has. */
function readTokensMax(folder: string, ofTokenizer: number | undefined): number {
  const { max_position_embeddings: ofModel } = readJson(folder, 'config.json')
  const limits = [ofTokenizer, ofModel].filter(
    limit => typeof limit === 'number' && limit > 0 && limit < 1_000_000,
  )
  return limits.length > 0 ? Math.min(...(limits as number[])) : usualTokensMax
}
