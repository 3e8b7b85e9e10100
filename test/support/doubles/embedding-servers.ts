import { countTokens } from 'gpt-tokenizer/encoding/cl100k_base'

/** What a server says when it refuses a call. */
type Refused = { status: number; body: unknown }

export type EmbeddingServer = {
  /** Most inputs of a call, tokens of an input, tokens of a call. */
  inputsMax?: number
  tokensMax?: number
  callTokensMax?: number
  /** What becomes of `encoding_format: "base64"`. */
  base64: 'answered' | 'ignored' | Refused
  /** What is refused: so many inputs, or so many tokens in one of them or in all. */
  tooMany?: (inputs: number) => Refused
  tooLong?: (tokens: number, input: string) => Refused
  tooMuch?: (tokens: number) => Refused
  /** A rate limit, with its headers. */
  limited?: Refused & { headers: Record<string, string> }
}

const openAiError = (message: string, code: string | null = null) => ({
  error: { message, type: 'invalid_request_error', param: null, code },
})

/**
 * Servers and providers of embeddings as they are set up by default, with their own limits, statuses and words;
 * 512 tokens stand for models such as bge, mxbai and all-MiniLM. Where an input that is too long is cut by the
 * server, there is no limit here.
 */
export const embeddingServers = {
  // Errors as quoted in fergana-labs/stash#268 and openai-python#519.
  openai: {
    inputsMax: 2_048,
    tokensMax: 8_191,
    callTokensMax: 300_000,
    base64: 'answered',
    tooMany: inputs => ({
      status: 400,
      body: openAiError(
        `Invalid 'input': array too long. Expected an array with maximum length 2048, but got an array with length ${inputs} instead.`,
        'array_above_max_length',
      ),
    }),
    tooLong: () => ({
      status: 400,
      body: openAiError("Invalid 'input[0]': maximum input length is 8192 tokens."),
    }),
    tooMuch: tokens => ({
      status: 400,
      body: openAiError(
        `Requested ${tokens} tokens, max 300000 tokens per request`,
        'max_tokens_per_request',
      ),
    }),
    limited: {
      status: 429,
      headers: { 'retry-after': '0', 'x-ratelimit-remaining-requests': '0' },
      body: openAiError('Rate limit reached for text-embedding-3-small', 'rate_limit_exceeded'),
    },
  },
  // StarTrail-org/LEANN#214; RooCodeInc/Roo-Code#7761 for base64.
  google: {
    inputsMax: 100,
    base64: {
      status: 400,
      body: [{ error: { code: 400, message: 'Invalid value: encoding_format', status: 'X' } }],
    },
    tooMany: () => ({
      status: 400,
      body: [
        {
          error: {
            code: 400,
            message:
              '* BatchEmbedContentsRequest.requests: at most 100 requests can be in one batch\n',
            status: 'INVALID_ARGUMENT',
          },
        },
      ],
    }),
  },
  // raphaelmansuy/edgequake-llm#74, aurelio-labs/semantic-router#297.
  mistral: {
    inputsMax: 512,
    tokensMax: 8_192,
    callTokensMax: 16_384,
    base64: 'ignored',
    tooMany: () => mistralError('Too many inputs in request, split into more batches.'),
    tooLong: tokens => mistralError(`Too many tokens in batch. Max is 8192 got ${tokens}`),
    tooMuch: () => mistralError('Too many tokens overall, split into more batches.'),
  },
  // misbahsy/RAGTune#2.
  cohere: {
    inputsMax: 96,
    base64: 'answered',
    tooMany: inputs => ({
      status: 400,
      body: {
        message: `invalid request: total number of texts must be at most 96 - received ${inputs}`,
      },
    }),
  },
  // sigoden/aichat#825, VeraTools/vera#18.
  voyage: {
    inputsMax: 1_000,
    callTokensMax: 120_000,
    base64: 'answered',
    tooMany: inputs => ({
      status: 400,
      body: { detail: `The batch size limit is 1000. Your batch size is ${inputs}.` },
    }),
    tooMuch: tokens => ({
      status: 400,
      body: {
        detail: `Request to model 'voyage-3-large' failed. The max allowed tokens per submitted batch is 120000. Your batch has ${tokens} tokens after truncation. Please lower the number of tokens in the batch.`,
      },
    }),
  },
  // langgenius/dify-official-plugins#1997, refly-ai/refly#831.
  jina: {
    inputsMax: 512,
    tokensMax: 8_192,
    base64: 'ignored',
    tooMany: () => ({
      status: 422,
      body: { detail: 'Validation error: Each input list can contain at most 512 items.' },
    }),
    tooLong: () => ({
      status: 400,
      body: { detail: 'Input text exceeds maximum length of 8192 tokens' },
    }),
  },
  // memodb-io/memobase#142.
  dashscope: {
    inputsMax: 10,
    tokensMax: 8_192,
    base64: 'ignored',
    tooMany: () =>
      dashScopeError(
        'Value error, batch size is invalid, it should not be larger than 10.: input.contents',
      ),
    tooLong: () => dashScopeError('Range of input length should be [1, 8192]'),
  },
  // lfnovo/open-notebook#350; the window counts for each input.
  ollama: {
    tokensMax: 512,
    base64: 'answered',
    tooLong: () => ({
      status: 400,
      body: openAiError('the input length exceeds the context length'),
    }),
  },
  // lmstudio-ai/lmstudio-bug-tracker#756: floats whatever is asked for.
  lmstudio: { base64: 'ignored' },
  // lemonade-sdk/lemonade#3591, ggml-org/llama.cpp#7389.
  llamacpp: {
    tokensMax: 512,
    base64: 'answered',
    tooLong: tokens => ({
      status: 500,
      body: {
        error: {
          code: 500,
          message: `input (${tokens} tokens) is too large to process. increase the physical batch size (current batch size: 512)`,
          type: 'server_error',
        },
      },
    }),
  },
  // michaelfeil/infinity#307; FastAPI repeats the input.
  infinity: {
    inputsMax: 128,
    tokensMax: 2_000,
    base64: 'answered',
    tooMany: inputs => ({
      status: 422,
      body: {
        detail: [
          {
            type: 'too_long',
            loc: ['body', 'input'],
            msg: `List should have at most 128 items after validation, not ${inputs}`,
          },
        ],
      },
    }),
    tooLong: (_, input) => ({
      status: 422,
      body: { detail: [{ type: 'string_too_long', msg: `String too long: '${input}'` }] },
    }),
  },
  // Zoo-Code-Org/Zoo-Code#335; huggingface/text-embeddings-inference#356 and its router/src/http/server.rs.
  tei: {
    inputsMax: 32,
    tokensMax: 512,
    base64: 'answered',
    tooMany: inputs =>
      teiError(422, `batch size ${inputs} > maximum allowed batch size 32`, 'Validation'),
    tooLong: tokens =>
      teiError(
        413,
        `Input validation error: \`inputs\` must have less than 512 tokens. Given: ${tokens}`,
        'Validation',
      ),
    limited: { ...teiError(429, 'Model is overloaded', 'Overloaded'), headers: {} },
  },
  // vllm-project/vllm#19798.
  vllm: {
    tokensMax: 512,
    base64: 'answered',
    tooLong: tokens => ({
      status: 400,
      body: {
        object: 'error',
        message: `This model's maximum context length is 512 tokens. However, you requested ${tokens} tokens in the input for embedding generation. Please reduce the length of the input.`,
        type: 'BadRequestError',
        param: null,
        code: 400,
      },
    }),
  },
} as const satisfies Record<string, EmbeddingServer>

export type EmbeddingServerName = keyof typeof embeddingServers

function mistralError(message: string): Refused {
  const body = { object: 'error', message, type: 'invalid_request_prompt', code: '3210' }
  return { status: 400, body }
}

function dashScopeError(message: string): Refused {
  const text = `<400> InternalError.Algo.InvalidParameter: ${message}`
  const error = { message: text, type: 'InvalidParameter', param: null, code: 'InvalidParameter' }
  return { status: 400, body: { error } }
}

function teiError(status: number, message: string, type: string): Refused {
  return { status, body: { message, code: status, type } }
}

/** Why a server refuses the inputs; undefined where it takes them. An empty input is refused by all. */
export function refusalOf(server: EmbeddingServer, input: readonly string[]): Refused | undefined {
  const { inputsMax = Infinity, tokensMax = Infinity, callTokensMax = Infinity } = server
  if (input.length > inputsMax) return server.tooMany!(input.length)
  if (input.includes('')) return { status: 400, body: openAiError('input cannot be empty') }
  const long = input.find(text => tokensOf(text, tokensMax) > tokensMax)
  if (long !== undefined) return server.tooLong!(tokensOf(long, tokensMax), long)
  if (bytesOf(input) <= callTokensMax) return undefined
  const tokens = input.reduce((sum, text) => sum + tokensOf(text, 0), 0)
  return tokens > callTokensMax ? server.tooMuch!(tokens) : undefined
}

const bytesOf = (texts: readonly string[]): number =>
  texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0)

/** A text has no more tokens than bytes; a long one is counted in slices, at once it would take seconds. */
function tokensOf(text: string, countedFrom: number): number {
  const bytes = Buffer.byteLength(text)
  if (bytes <= countedFrom) return bytes
  let sum = 0
  for (let start = 0; start < text.length; start += 1_000) {
    sum += countTokens(text.slice(start, start + 1_000), { allowedSpecial: 'all' })
  }
  return sum
}
