import java.io.File;

/** Finds the last data file of a folder, by name. */
public class Main {
    public static void main(String[] words) {
        String last = "";
        for (String name : new File(words[0]).list()) {
            if (name.endsWith(".dat") && name.compareTo(last) > 0) {
                last = name;
            }
        }
        System.out.println("last " + last);
    }
}
