# tw_test(PROGRAM LABEL source...)
#
# Registers the tests of a program by how long they take, which the names of their suites say:
#   TEST(MatchSlow, ...)   label `slow`, test PROGRAM_slow: takes more than half a second. Sanitizers skip it.
#   TEST(MatchFull, ...)   label `full`, test PROGRAM_full: what only `scripts/test full` has time for.
#   TEST(Match, ...)       LABEL, test PROGRAM.
# A suite of many parameters may say it in the name of its instances:
# INSTANTIATE_TEST_SUITE_P(ProductsSlow, Match, ...).
function(tw_test program label)
  set(longer)
  foreach(kind Slow Full)
    set(suites *${kind}.*:*${kind}/*)
    set(found)
    foreach(source ${ARGN})
      file(STRINGS ${source} lines REGEX "^(TEST|TEST_[FP]|INSTANTIATE_TEST_SUITE_P)\\([A-Za-z0-9]+${kind},")
      list(APPEND found ${lines})
    endforeach()
    if(found)
      string(TOLOWER ${kind} suffix)
      add_test(NAME ${program}_${suffix} COMMAND ${program} --gtest_filter=${suites})
      set_tests_properties(${program}_${suffix} PROPERTIES LABELS ${suffix} TIMEOUT 3600)
      list(APPEND longer ${suites})
    endif()
  endforeach()
  set(filter)
  if(longer)
    list(JOIN longer ":" longer)
    set(filter --gtest_filter=-${longer})
  endif()
  add_test(NAME ${program} COMMAND ${program} ${filter})
  set_tests_properties(${program} PROPERTIES LABELS ${label} TIMEOUT 900)
endfunction()
