import {
  builtInProviders,
  providerNamePattern,
  variablePrefix,
  type Provider,
  type Providers,
} from '#shared/core/provider-registry.ts'

export type Environment = Record<string, string | undefined>

/** Reads one variable; a missing or blank one, and one with a fault, is the fallback. */
export type ReadVariable = <T>(name: string, parse: (text: string) => T, fallback: T) => T

/** @param faults gets `<NAME> <message>` for each variable that its parser throws at */
export const environmentReader =
  (env: Environment, faults: string[]): ReadVariable =>
  (name, parse, fallback) => {
    const text = env[name]?.trim()
    if (!text) return fallback
    try {
      return parse(text)
    } catch (error) {
      faults.push(`${name} ${(error as Error).message}`)
      return fallback
    }
  }

/**
 * Reads the built-in providers, then those that `PROVIDERS` names. `<NAME>_BASE_URL`, `<NAME>_API_KEY` and
 * `<NAME>_MODELS` set each of them. A provider of the operator needs an address; without a key it is self-hosted.
 *
 * @param faults gets a line for each name or value that cannot be used
 */
export function readProviders(read: ReadVariable, faults: string[]): Providers {
  const providers = new Map<string, Provider>()
  for (const [name, api] of Object.entries(builtInProviders)) {
    providers.set(name, {
      name,
      isAddressSet: false,
      isAzure: false,
      ...api,
      ...readSettings(read, name),
    })
  }
  for (const name of read('PROVIDERS', parseOwnNames, [])) {
    const { apiKey, baseUrl, ...settings } = readSettings(read, name)
    const variable = `${variablePrefix(name)}_BASE_URL`
    const isGiven = read(variable, () => true, false)
    if (!isGiven) faults.push(`${variable} is missing: PROVIDERS names ${name}`)
    providers.set(name, {
      name,
      baseUrl: baseUrl ?? '',
      isAddressSet: true,
      isAzure: false,
      responses: true,
      ...(apiKey === undefined ? { selfHosted: true } : { apiKey }),
      ...settings,
    })
  }
  return providers
}

function readSettings(read: ReadVariable, name: string): Partial<Provider> {
  const prefix = variablePrefix(name)
  const apiKey = read(`${prefix}_API_KEY`, text => text, '')
  const models = read(`${prefix}_MODELS`, parseModelNames, [])
  return {
    ...read(`${prefix}_BASE_URL`, parseAddress, {}),
    ...(apiKey && { apiKey }),
    ...(models.length > 0 && { models }),
  }
}

function parseOwnNames(text: string): string[] {
  const names = text.split(',').map(name => name.trim())
  for (const name of names) {
    if (!providerNamePattern.test(name))
      throw new Error(
        'must be names separated by commas, each a small letter and then 1 to 30 small letters, digits and dashes',
      )
    if (name === 'local') throw new Error('must not name local: it is the embedder of this service')
    if (name === 'rerank') throw new Error('must not name rerank: its variables are the reranker’s')
    if (Object.hasOwn(builtInProviders, name))
      throw new Error(
        `must not name ${name}, which is built in: ${variablePrefix(name)}_BASE_URL alone sets its address`,
      )
  }
  return [...new Set(names)]
}

/** By `azure_endpoint` and `base_url` of Microsoft's pages on Azure OpenAI. A gateway is known by its `api-version`. */
const azureHosts = [
  '.openai.azure.com',
  '.openai.azure.us',
  '.services.ai.azure.com',
  '.cognitiveservices.azure.com',
]

/** Parses an address of the operator. Credentials in it would end up in logs. */
export function parseHttpUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null
  if (!url || !/^https?:$/.test(url.protocol)) throw new Error('must be an http(s) URL')
  if (url.username || url.password) throw new Error('must not hold credentials')
  return url
}

function parseAddress(text: string): Partial<Provider> {
  const url = parseHttpUrl(text)
  const { 'api-version': apiVersion, ...rest } = Object.fromEntries(url.searchParams)
  if (url.hash || Object.keys(rest).length > 0 || apiVersion === '')
    throw new Error('must end in its path; Azure alone has a query, ?api-version=…')
  const isAzure = apiVersion !== undefined || azureHosts.some(host => url.hostname.endsWith(host))
  const baseUrl = (url.origin + url.pathname).replace(/(?<!\/)\/+$/, '')
  if (isAzure && baseUrl === url.origin)
    throw new Error('must go on with /openai/v1, or with /openai?api-version=…')
  return { baseUrl, isAddressSet: true, isAzure, ...(apiVersion && { apiVersion }) }
}

const modelsMax = 1_000

function parseModelNames(text: string): string[] {
  const names = text.split(',').map(name => name.trim())
  if (names.length <= modelsMax && names.every(name => /^[\x21-\x7E]{1,200}$/.test(name)))
    return [...new Set(names)]
  throw new Error(`must be at most ${modelsMax} names of models, separated by commas`)
}
