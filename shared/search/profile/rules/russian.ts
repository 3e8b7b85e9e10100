import { compileRules } from '#shared/search/profile/rules/rule.ts'

const kin =
  '(?:сестра|брат|мать|мама|отец|папа|жена|муж|сын|дочь|дочка|бабушка|дедушка|тётя|тетя|дядя|начальник|начальница|коллега|сосед|соседка|подруга|друг|собака|кот|кошка|пёс|пес)'

const my = '(?:мой|моя|моё|мое|наш|наша)'

/** Names, homes and the people around: what short questions of a person are about. */
export const russian = compileRules(kin, [
  { kind: 'name', cues: 'зовут', pattern: 'меня зовут {x}', subject: 'name', isName: true },
  {
    kind: 'name',
    cues: 'имя',
    pattern: 'мо[её] (?:полное )?имя(?: [-–—])? {x}',
    subject: 'name',
    isName: true,
  },
  {
    kind: 'name',
    cues: 'зови зовите называй называйте',
    pattern: '(?:зови|зовите|называй|называйте) меня (?:просто )?{x}',
    subject: 'form of address',
    isName: true,
  },
  {
    kind: 'person',
    cues: 'мою моего нашу нашего',
    pattern: '(?:мою|моего|нашу|нашего) [а-яё]{2,15} зовут {x}',
    isName: true,
  },
  {
    kind: 'person',
    cues: 'мой моя наш наша',
    pattern: `${my} {kin},? {x}`,
    subject: '{subject}',
    isName: true,
  },
  {
    kind: 'place',
    cues: 'живу живём живем проживаю',
    pattern:
      '(?:я|мы) (?:сейчас |теперь |уже |давно ){0,2}(?:живу|живём|живем|проживаю) (?:сейчас |теперь )?(?:в|во|на|под|около) {x}',
    subject: 'home',
  },
  {
    kind: 'place',
    cues: 'переехал переехала переехали',
    pattern: '(?:я|мы) (?:недавно |только что )?переехал(?:а|и)? (?:жить )?(?:в|во|на) {x}',
    subject: 'home',
    isName: true,
  },
  {
    kind: 'place',
    cues: 'родом родился родилась вырос выросла',
    pattern: 'я (?:родом из|родился в|родилась в|вырос в|выросла в) {x}',
    isName: true,
  },
  {
    kind: 'place',
    cues: 'адрес',
    pattern: 'мой (?:домашний |новый )?адрес(?: [-–—])? {x}',
    subject: 'address',
  },
  {
    kind: 'role',
    cues: 'работаю',
    pattern: 'я (?:сейчас |теперь )?работаю (?!(?:в|во|на|из|по|до|с|над|за|не)(?![а-яё])){x}',
    subject: 'occupation',
  },
  {
    kind: 'role',
    cues: 'работаю',
    pattern: 'я (?:сейчас |теперь )?работаю (?:в|во|на) {x}',
    subject: 'employer',
    isName: true,
  },
  {
    kind: 'date',
    cues: 'рождения',
    pattern: '(?:мой день рождения|у меня день рождения)(?: [-–—])? {x}',
    subject: 'birthday',
    isDate: true,
  },
  {
    kind: 'date',
    cues: 'лет года год',
    pattern: 'мне (?:сейчас |уже )?(?<value>[0-9]{1,3}) (?:лет|года?)(?![а-яё])',
    subject: 'age',
  },
])
