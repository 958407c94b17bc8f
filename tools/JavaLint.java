import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;

/** Compiles Java programs with all warnings, which count as errors. Usage: java tools/JavaLint.java JAR:JAR... FILE... */
public final class JavaLint {
    private JavaLint() {}

    /** Files of one folder are one program: many folders have a class `Main`. One JVM compiles all, as each start takes a second. */
    public static void main(String[] words) throws IOException {
        Map<Path, List<Path>> programs = new TreeMap<>();
        for (String word : List.of(words).subList(1, words.length)) {
            Path file = Path.of(word);
            programs.computeIfAbsent(file.toAbsolutePath().getParent(), folder -> new ArrayList<>()).add(file);
        }
        Path out = Files.createDirectories(Path.of("target", "java"));
        int wrong = 0;
        for (Collection<Path> files : programs.values()) {
            wrong += isRight(files, words[0], out) ? 0 : 1;
        }
        System.out.printf("%d programs, %d with warnings%n", programs.size(), wrong);
        System.exit(wrong > 0 ? 1 : 0);
    }

    private static boolean isRight(Collection<Path> files, String jars, Path out) throws IOException {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        // `try` would warn of what is only measured until the end of its block.
        List<String> options = List.of("-Xlint:all,-try", "-Werror", "-proc:none", "-cp", jars, "-d", out.toString());
        try (StandardJavaFileManager manager = compiler.getStandardFileManager(null, null, null)) {
            return compiler.getTask(null, manager, null, options, null, manager.getJavaFileObjectsFromPaths(files)).call();
        }
    }
}
