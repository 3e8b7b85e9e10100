import t from 'tap'
import type { ApiFormat } from '#shared/core/provider-registry.ts'
import { dialects } from '#api/proxy/dialects/index.ts'

const written = (family: ApiFormat, body: string): string =>
  dialects[family].parseRequest(Buffer.from(body)).serialize({ context: 'BLOCK' }).toString()

const openaiBlock = '{"role":"user","content":"BLOCK"}'
const anthropicBlock = '{"type":"text","text":"BLOCK"}'
const googleBlock = '{"text":"BLOCK"}'
const responsesBlock =
  '{"type":"message","role":"user","content":[{"type":"input_text","text":"BLOCK"}]}'

const blocks: Record<ApiFormat, string> = {
  openai: openaiBlock,
  anthropic: anthropicBlock,
  google: googleBlock,
  responses: responsesBlock,
}

/**
 * What the provider gets of each request. The client has sent the same without the block, but where both are given: there
 * the block changes more.
 */
const cases: Record<ApiFormat, Record<string, string | { sent: string; got: string }>> = {
  openai: {
    'a message of its own before the last user message': `{"messages":[{"role":"system","content":"s"}, ${openaiBlock},{"role":"user","content":"a"}]}`,
    'with results of tools last it stays before what the user asked': `{"messages":[${openaiBlock},{"role":"user","content":"a"},{"role":"assistant","tool_calls":[]},{"role":"tool","content":"r"}]}`,
    'after the message when a part of it is marked for caching': `{"messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]},${openaiBlock} ]}`,
    'a mark on an earlier message, or one that is none, changes nothing': `{"messages":[{"role":"user","content":[{"cache_control":{}}]},${openaiBlock},{"role":"user","content":[{"cache_control":null}]}]}`,
    'nowhere without a user message':
      '{"messages":[{"role":"system","content":"s"},{"role":"User","content":"a"}]}',
    'of two lists of messages the last one counts': `{"messages":[{"role":"user","content":"a"}],"messages":[${openaiBlock},{"role":"user","content":"b"}]}`,
    'of two roles the last one counts': `{"messages":[{"role":"user","role":"assistant"},${openaiBlock},{"role":"tool","\\u0072ole":"us\\u0065r"}]}`,
  },
  anthropic: {
    'plain text becomes a list with the block before it': {
      sent: '{"messages":[{"role":"user","content" : "caf\\u00e9\\n" }]}',
      got: `{"messages":[{"role":"user","content" : [${anthropicBlock},{"type":"text","text":"caf\\u00e9\\n"}] }]}`,
    },
    'at the head of a list': `{"messages":[{"role":"user","content":[ ${anthropicBlock},{"type":"image"},{"type":"text","text":"a"}]}]}`,
    'after the results of tools, which come first': `{"messages":[{"role":"user","content":[{"type":"tool_result"},{"type":"tool_result"},${anthropicBlock},{"type":"text","text":"a"}]}]}`,
    'a message of nothing but results is no turn of the user': {
      sent: '{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[]},{"role":"user","content":[{"type":"tool_result"}]}]}',
      got: `{"messages":[{"role":"user","content":[${anthropicBlock},{"type":"text","text":"a"}]},{"role":"assistant","content":[]},{"role":"user","content":[{"type":"tool_result"}]}]}`,
    },
    'after a part marked for caching that others follow': `{"messages":[{"role":"user","content":[{"type":"document","cache_control":{"type":"ephemeral"}},${anthropicBlock},{"type":"text","text":"a"}]}]}`,
    'after a marked part that is the last': `{"messages":[{"role":"user","content":[{"type":"document","cache_control":{"type":"ephemeral"}},{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},${anthropicBlock} ]}]}`,
    'after results of tools and a text that is marked': `{"messages":[{"role":"user","content":[{"type":"tool_result","cache_control":{}},{"type":"text","text":"a","cache_control":{}},${anthropicBlock}]}]}`,
    'a mark for the whole request is set on the last part, and the block after it': {
      sent: '{"cache_control":{"type":"ephemeral", "ttl":"1h"},"messages":[{"role":"user","content":[{"type":"image"},{"type":"text","text":"a" }]}]}',
      got: `{"cache_control":null,"messages":[{"role":"user","content":[{"type":"image"},{"type":"text","text":"a" ,"cache_control":{"type":"ephemeral", "ttl":"1h"}},${anthropicBlock}]}]}`,
    },
    'so it is where the message is plain text': {
      sent: '{"messages":[{"role":"user","content":"a"}], "cache_control": {"type":"ephemeral"}}',
      got: `{"messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},${anthropicBlock}]}], "cache_control": null}`,
    },
    'a part has one mark': {
      sent: '{"cache_control":{"a":1},"messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"b":2}}]}]}',
      got: `{"cache_control":null,"messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"b":2}},${anthropicBlock}]}]}`,
    },
    'a mark for the whole request stays there when results of tools are last': {
      sent: '{"cache_control":{"a":1},"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"tool_use"}]},{"role":"user","content":[{"type":"tool_result"}]}]}',
      got: `{"cache_control":{"a":1},"messages":[{"role":"user","content":[${anthropicBlock},{"type":"text","text":"a"}]},{"role":"assistant","content":[{"type":"tool_use"}]},{"role":"user","content":[{"type":"tool_result"}]}]}`,
    },
    'a mark for the whole request that is null is none': {
      sent: '{"cache_control":null,"messages":[{"role":"user","content":"a"}]}',
      got: `{"cache_control":null,"messages":[{"role":"user","content":[${anthropicBlock},{"type":"text","text":"a"}]}]}`,
    },
    'a mark that is null is none, and one inside a part is not its own': `{"messages":[{"role":"user","content":[${anthropicBlock},{"type":"x","cache_control":null},{"type":"y","z":{"cache_control":{}}},{"type":"text","text":"a"}]}]}`,
    'before the user, when the client begins the answer itself': {
      sent: '{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"{"}]}',
      got: `{"messages":[{"role":"user","content":[${anthropicBlock},{"type":"text","text":"a"}]},{"role":"assistant","content":"{"}]}`,
    },
    'a content that is empty or odd is left to the provider':
      '{"messages":[{"role":"user","content":""},{"role":"user","content":[]},{"role":"user","content":[1]},{"role":"user","content":null},{"role":"user","content":{"type":"text"}},{"role":"user"}]}',
  },
  google: {
    'a part at the head of the last content of the user': `{"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"text":"b"}]},{"role":"user","parts":[ ${googleBlock},{"text":"c"}]}]}`,
    'a content without a role is the user’s': `{"contents":[{"parts":[${googleBlock},{"text":"a"}]}]}`,
    'one content and one part, where lists are meant': {
      sent: '{"contents":{"parts":{"text":"a"}}}',
      got: `{"contents":{"parts":[${googleBlock},{"text":"a"}]}}`,
    },
    'answers of functions are not the user’s': `{"contents":[{"role":"user","parts":[${googleBlock},{"text":"a"}]},{"role":"user","parts":[{"functionResponse":{}}]},{"role":"user","parts":{"function_response":{}}}]}`,
    'after the answers of functions in the same content': `{"contents":[{"role":"user","parts":[{"functionResponse":{}},${googleBlock},{"text":"a"}]}]}`,
    'nowhere in parts that are empty or odd':
      '{"contents":[{"role":"user","parts":[]},{"role":"user","parts":"a"},{"role":"user"},"a"]}',
  },
  responses: {
    'a text becomes two items': {
      sent: '{"input" : "caf\\u00e9\\n" ,"model":"m"}',
      got: `{"input" : [${responsesBlock},{"role":"user","content":"caf\\u00e9\\n"}] ,"model":"m"}`,
    },
    'an item of its own before the last one of the user': `{"input":[{"role":"developer","content":"s"},{"type":"additional_tools","role":"developer","tools":[{"role":"user"}]}, ${responsesBlock},{"type":"message","role":"user","content":[{"type":"input_text","text":"a"}]}]}`,
    'with results of tools last it stays before what the user asked': `{"input":[${responsesBlock},{"role":"user","content":"a"},{"type":"reasoning","content":[{"type":"reasoning_text","text":"user"}]},{"type":"function_call","call_id":"c"},{"type":"function_call_output","call_id":"c","output":"user"}]}`,
    'after the item when a part of it is marked for caching': `{"input":[{"role":"user","content":[{"type":"input_text","text":"a","cache_control":{"type":"ephemeral"}}]},${responsesBlock}]}`,
    'nowhere when the words are with the provider':
      '{"previous_response_id":"resp_1","input":[{"type":"function_call_output","call_id":"c","output":"r"}]}',
    'nowhere without input, and in input that is odd':
      '{"prompt":{"id":"pmpt_1"},"input":{"role":"user","content":"a"}}',
  },
}

for (const family of Object.keys(cases) as ApiFormat[]) {
  for (const [name, given] of Object.entries(cases[family])) {
    t.test(`${family}: ${name}`, async t => {
      const got = typeof given === 'string' ? given : given.got
      const block = blocks[family]
      const without = got.replace(`${block},`, '').replace(`,${block}`, '')
      const sent = typeof given === 'string' ? without : given.sent
      JSON.parse(got)
      t.equal(written(family, sent), got)
      t.equal(dialects[family].parseRequest(Buffer.from(sent)).userTurn !== undefined, sent !== got)
      t.equal(dialects[family].parseRequest(Buffer.from(sent)).serialize({}).toString(), sent)
    })
  }
}

t.test('a block is escaped into its string', async t => {
  const context = '"\\\n\u0000\u2028 猫 \ud800'
  const body = dialects.openai
    .parseRequest(Buffer.from('{"messages":[{"role":"user","content":"a"}]}'))
    .serialize({ context })
  const { messages } = JSON.parse(body.toString()) as { messages: { content: string }[] }
  t.equal(messages[0]?.content, context)
})

t.test('one request can be written several times, each for itself', async t => {
  const request = dialects.openai.parseRequest(
    Buffer.from('{"memory":false,"model":"a","messages":[{"role":"user"}]}'),
  )
  const plain = '{"model":"a","messages":[{"role":"user"}]}'
  t.equal(request.serialize({ context: 'one', model: 'b' }).toString().includes('one'), true)
  t.equal(request.serialize({}).toString(), plain)
  t.equal(request.serialize({ model: 'b' }).toString(), plain.replace('"a"', '"b"'))
})
